"""What a page shows: its text, and what can be worked on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Element:
    """Something on a page that can be worked.

    Attributes:
        kind: What it is: link, button, select, ``input text`` and the like.
        label: What it is called.
        value: What it holds; empty for what holds nothing.
        target: Where a link leads.
        is_disabled: Whether it cannot be worked now.
        options: What can be selected in it.
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
    """What a page shows.

    Attributes:
        title: Its title.
        url: Its address.
        text: Its text from the top of the window on.
        is_cut: Whether there is more text than that.
        elements: What can be worked from there on; their numbers start at 1.
        elements_left_out: How many more there are.
        screens_above: How many windows of page are above.
        screens_below: How many windows of page are below.
        notes: What happened since the last look.
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
