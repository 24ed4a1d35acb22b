"""Content of a page's window: its text and its interactive elements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Element:
    """An interactive element of a page: link, button, select, ``input text`` and the like.

    The value is empty for an element without one; `target` is the address a link leads to.
    """

    kind: str
    label: str
    value: str
    target: str
    is_disabled: bool
    options: tuple[str, ...]

    def to_text(self) -> str:
        """Return it as one line."""
        facts = [f'{self.kind} "{self.label}"']
        facts += [f"holds: {self.value}"] if self.value else []
        facts += [f"leads to: {self.target}"] if self.target else []
        facts += [f"options: {'; '.join(self.options)}"] if self.options else []
        facts += ["disabled"] if self.is_disabled else []
        return ", ".join(facts)


@dataclass(frozen=True, slots=True)
class Observation:
    """Content of a page at one moment: its text and elements from the top of the window on.

    `is_cut` says whether there is more text, `screens_above` and `screens_below` how many windows
    of page there are; `notes` are the events since the last observation.
    """

    title: str
    url: str
    text: str
    is_cut: bool
    elements: tuple[Element, ...]
    elements_left_out: int
    screens_above: float
    screens_below: float
    notes: tuple[str, ...]

    def to_text(self) -> str:
        """Return it for a model to read."""
        lines = [f"Title: {self.title}", f"Address: {self.url}", "", "Text:", self.text or "(none)"]
        if self.is_cut:
            lines.append("(the text goes on; scroll down to see more)")
        place = f"{self.screens_above:.1f} windows above, {self.screens_below:.1f} below"
        lines += [f"(there are {place})", "", "Elements:"]
        lines += [f"[{n}] {item.to_text()}" for n, item in enumerate(self.elements, 1)]
        if not self.elements:
            lines.append("(none)")
        if self.elements_left_out:
            lines.append(f"(and {self.elements_left_out} more further down; scroll to see them)")
        return "\n".join(lines)
