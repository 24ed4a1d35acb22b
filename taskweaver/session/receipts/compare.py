"""Compares a receipt with its cells run again, up to the first difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from taskweaver.memory.cells import ExecutedCell
from taskweaver.session.answers.check import verify
from taskweaver.session.answers.outcomes import CODE, SupportingText, cell_sources
from taskweaver.session.receipts.receipt import Receipt
from taskweaver.session.replay import LineDifference, differing_lines
from taskweaver.utils.redact import redact_secrets
from taskweaver.utils.text import counted

_SHOWN_CHARS = 200
_EXCEPTION = "Traceback (most recent call last)"
_COUNTED = frozenset({"Result", "Output"})

Kind = Literal["input", "cell", "answer"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A cell that was run again.

    `report` has the form that is recorded; `error` is empty for success.
    """

    report: str
    error: str
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ReceiptDifference:
    """The first point in which a receipt is not confirmed.

    Attributes:
        kind: An input, a cell or the answer.
        name: Name of the input, or empty.
        cell: Number of the cell; 0 for none.
        place: Part of the outcome, for example ``Result``.
        line: Line in it, from 1; 0 for the part as a whole.
        recorded: The recorded text.
        now: The text now.
    """

    kind: Kind
    name: str
    cell: int
    place: str
    line: int
    recorded: str
    now: str

    def __str__(self) -> str:
        if self.kind == "input":
            where = f"input {self.name}, {self.place}"
        elif self.kind == "answer":
            return f"answer: {self.recorded!r} stands in no outcome now"
        else:
            line = f", line {self.line}" if self.line else ""
            where = f"cell {self.cell}, {self.place}{line}"
        return f"{where}: {self.recorded!r} was recorded, now {self.now!r}"


Run = Callable[[ExecutedCell], Outcome]


@dataclass(frozen=True, slots=True)
class ReceiptComparison:
    """A receipt compared with its cells run again.

    Attributes:
        difference: The first difference; None if all is as recorded.
        unproven: Numbers of the answer that no outcome of a cell holds: they stand in a message,
            in code alone, or nowhere.
    """

    difference: ReceiptDifference | None
    unproven: tuple[str, ...] = ()


def compare(receipt: Receipt, hashes: Mapping[str, str], run: Run) -> ReceiptComparison:
    """Run the cells of a receipt, and compare up to the first difference.

    A cell that raised an exception runs again for its effects: the next cell may use variables
    that it had set before. Its own outcome is not compared.
    """
    for item in receipt.inputs:
        if hashes[item.name] != item.sha256:
            now = hashes[item.name]
            return ReceiptComparison(
                ReceiptDifference("input", item.name, 0, "sha256", 0, item.sha256, now)
            )
    sources: list[SupportingText] = []
    for cell in receipt.cells:
        if not cell.is_success and _EXCEPTION not in cell.report:
            continue  # it was interrupted, or ended with its process
        outcome = run(cell)
        found = _cell_difference(cell, outcome) if cell.is_success else None
        if found is not None:
            return ReceiptComparison(found)
        again = replace(cell, report=redact_secrets(outcome.report), variables=outcome.variables)
        sources = [*cell_sources(again), *sources]
    return _answer_compared(receipt, sources)


def _cell_difference(cell: ExecutedCell, outcome: Outcome) -> ReceiptDifference | None:
    if outcome.error:
        reason = outcome.error.strip().splitlines()[-1][:_SHOWN_CHARS]
        return ReceiptDifference("cell", "", cell.number, "Execution", 0, "success", reason)
    lines = list(differing_lines(cell.report, redact_secrets(outcome.report)))
    lines += _variable_differences(cell, outcome)
    first = next((line for line in lines if line.line), lines[0] if lines else None)
    if first is None:
        return None
    old, new = (text[:_SHOWN_CHARS] for text in (first.recorded, first.now))
    if first.part in _COUNTED and not first.line:
        old, new = counted(int(old), "line"), counted(int(new), "line")
    return ReceiptDifference("cell", "", cell.number, first.part, first.line, old, new)


def _variable_differences(cell: ExecutedCell, outcome: Outcome) -> list[LineDifference]:
    """Return the variables that are in both lists and differ."""
    now = dict(outcome.variables)
    return [
        LineDifference(f"Variables, {name}", 0, old, redact_secrets(now[name]))
        for name, old in cell.variables
        if name in now and _differ(old, redact_secrets(now[name]))
    ]


def _differ(old: str, new: str) -> bool:
    before, after = (f"### Result\n{text}" for text in (old, new))
    return next(differing_lines(before, after), None) is not None


def _answer_compared(receipt: Receipt, sources: list[SupportingText]) -> ReceiptComparison:
    """Look up the numbers of the answer in the new outcomes."""
    outcomes = [source for source in sources if source.where != CODE]
    unproven = verify(receipt.answer.text, outcomes).unsupported_numbers
    missing = verify(receipt.answer.text, sources).unsupported_numbers
    # A number of a message, or of a role without cells, is nothing that can run again.
    known = set(receipt.answer.unsupported_numbers)
    known |= {item.text for item in receipt.answer.evidence if not item.cell}
    gone = next((text for text in missing if text not in known), None)
    if gone is not None:
        return ReceiptComparison(ReceiptDifference("answer", "", 0, "text", 0, gone, ""), unproven)
    return ReceiptComparison(None, unproven)
