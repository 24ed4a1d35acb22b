"""Compares a receipt with its cells run again, up to the first difference."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from taskweaver.memory.executed import ExecutedCell
from taskweaver.session.answers.check import verify
from taskweaver.session.answers.outcomes import Source, cell_sources
from taskweaver.session.receipts.receipt import Receipt
from taskweaver.session.replay import LineDifference, differing_lines
from taskweaver.utils.redact import redact
from taskweaver.utils.text import counted

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
_SHOWN_CHARS = 200
_COUNTED = frozenset({"Result", "Output"})

Kind = Literal["input", "cell", "answer"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A cell that was run again.

    Attributes:
        report: The report on it, in the form that is recorded.
        error: The reason it failed; empty for success.
        variables: Names and descriptions of the variables after it.
    """

    report: str
    error: str
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """The first point in which a receipt is not confirmed.

    Attributes:
        kind: Whether an input, a cell or the answer differs.
        name: Name of the input, or empty.
        cell: Number of the cell; 0 for none.
        place: Part of the outcome, such as ``Result``.
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
        """Describe the difference in a line."""
        if self.kind == "input":
            where = f"input {self.name}, {self.place}"
        elif self.kind == "answer":
            return f"answer: {self.recorded!r} stands in no outcome now"
        else:
            line = f", line {self.line}" if self.line else ""
            where = f"cell {self.cell}, {self.place}{line}"
        return f"{where}: {self.recorded!r} was recorded, now {self.now!r}"


Run = Callable[[ExecutedCell], Outcome]


def first_difference(receipt: Receipt, hashes: Mapping[str, str], run: Run) -> Difference | None:
    """Run the cells of a receipt that succeeded, and return the first difference.

    Args:
        receipt: The receipt.
        hashes: Hash of each input that is used, by name.
        run: Runs a cell in the fresh kernel.
    """
    for item in receipt.inputs:
        if hashes[item.name] != item.sha256:
            now = hashes[item.name]
            return Difference("input", item.name, 0, "sha256", 0, item.sha256, now)
    sources: list[Source] = []
    for cell in receipt.cells:
        if not cell.is_success:
            continue
        outcome = run(cell)
        found = _cell_difference(cell, outcome)
        if found is not None:
            return found
        again = replace(cell, report=redact(outcome.report), variables=outcome.variables)
        sources = [*cell_sources(again), *sources]
    return _answer_difference(receipt, sources)


def _cell_difference(cell: ExecutedCell, outcome: Outcome) -> Difference | None:
    if outcome.error:
        reason = outcome.error.strip().splitlines()[-1][:_SHOWN_CHARS]
        return Difference("cell", "", cell.number, "Execution", 0, "success", reason)
    lines = list(differing_lines(_plain(cell.report), _plain(redact(outcome.report))))
    lines += _variable_differences(cell, outcome)
    first = next((line for line in lines if line.line), lines[0] if lines else None)
    if first is None:
        return None
    old, new = (text[:_SHOWN_CHARS] for text in (first.recorded, first.now))
    if first.part in _COUNTED and not first.line:
        old, new = counted(int(old), "line"), counted(int(new), "line")
    return Difference("cell", "", cell.number, first.part, first.line, old, new)


def _variable_differences(cell: ExecutedCell, outcome: Outcome) -> list[LineDifference]:
    """Return the variables that are in both lists and differ."""
    now = dict(outcome.variables)
    return [
        LineDifference(f"Variables, {name}", 0, old, redact(now[name]))
        for name, old in cell.variables
        if name in now and _differ(old, redact(now[name]))
    ]


def _differ(old: str, new: str) -> bool:
    before, after = (f"### Result\n{_plain(text)}" for text in (old, new))
    return next(differing_lines(before, after), None) is not None


def _plain(text: str) -> str:
    """Return a text without memory addresses, which differ from run to run."""
    return _ADDRESS.sub("0x", text)


def _answer_difference(receipt: Receipt, sources: list[Source]) -> Difference | None:
    """Return a number of the answer that the outcomes do not hold, though it was recorded so."""
    question = Source("question", 0, "message", receipt.question)
    now = verify(receipt.answer.text, [*sources, question]).unsupported_numbers
    # A number from an earlier message, or from a role without cells, is nothing to run again.
    known = set(receipt.answer.unsupported_numbers)
    known |= {item.text for item in receipt.answer.evidence if not item.cell}
    missing = next((text for text in now if text not in known), None)
    if missing is None:
        return None
    return Difference("answer", "", 0, "text", 0, missing, "")
