"""Frame as a reader of a file gave it, and the choice of one of the file's parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from taskweaver.tables.errors import MissingTableError
from taskweaver.tables.plans.plan import ReadPlan
from taskweaver.tables.plans.steps import Frame


@dataclass(slots=True)
class Raw:
    """Frame as a reader gave it.

    Attributes:
        frame: The frame, with the plan's steps carried out.
        form: Words on the form of the file: ``comma``, ``UTF-8``.
        notes: Sentences on other decisions.
        unclear: Phrases on decisions without evidence.
        lost: Phrases on rows that are no records.
        texts: Columns of numerals that stay text.
        decimal: Decimal separator of the file; empty for unknown.
        first: First rows as they are written, for a file of separated text.
    """

    plan: ReadPlan
    frame: Frame
    form: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    decimal: str = ""
    first: tuple[tuple[str, ...], ...] = ()

    def note_others(self, kind: str, names: Sequence[str], chosen: str) -> None:
        """Note the other sheets or tables of the file, of many the first."""
        others = [repr(name) for name in names if name != chosen]
        if others:
            shown = ", ".join(others[:6]) + (" ..." if len(others) > 6 else "")
            self.notes.append(f"Other {kind}s: {shown}.")


def part_named(wanted: str | int, names: Sequence[str], kind: str, file: str) -> str:
    """Return the sheet or table of a name, which may be in another case.

    Raises:
        MissingTableError: If there is none.
    """
    folded = str(wanted).strip().casefold()
    alike = [name for name in names if name == wanted]
    alike += [name for name in names if name.strip().casefold() == folded]
    if not alike:
        shown = ", ".join(map(repr, names[:10]))
        raise MissingTableError(f"{file} has no {kind} {wanted!r}; there are {shown}.")
    return alike[0]
