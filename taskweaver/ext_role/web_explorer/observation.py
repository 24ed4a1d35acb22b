"""Content of a page's window: its text and its interactive elements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Element:
    """An interactive element of a page.

    Attributes:
        kind: Its kind: link, button, select, ``input text`` and the like.
        label: Its label.
        value: Its value; empty for an element without one.
        target: Address a link leads to.
        is_disabled: Whether it is disabled now.
        options: The options to select from.
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
    """Content of a page at one moment.

    Attributes:
        title: Its title.
        url: Its address.
        text: Its text from the top of the window on.
        is_cut: Whether there is more text than that.
        elements: Interactive elements from there on; their numbers start at 1.
        elements_left_out: Number of further elements.
        screens_above: Number of windows of page above.
        screens_below: Number of windows of page below.
        notes: Events since the last observation.
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
