"""Receipts: an answer in one file, with the cells, outcomes and input hashes that prove it.

The form on disk is JSON, versioned, validated when it is read. A receipt may come from an untrusted
source: names must be plain file names and texts must be texts, and a receipt that does not fit the
form is refused in one line. Its cells run again, and are compared up to the first difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from taskweaver.memory.cells import ExecutedCell, Ran
from taskweaver.memory.round import RoundAnswer
from taskweaver.session.answers.check import verify
from taskweaver.session.answers.outcomes import CODE, SupportingText, cell_sources
from taskweaver.session.errors import SessionError
from taskweaver.session.replay import LineDifference, differing_lines
from taskweaver.utils.file_system.safe_fs import is_plain_name
from taskweaver.utils.files import read_json, write_text
from taskweaver.utils.redact import MASK, redact_secrets
from taskweaver.utils.text import counted

FORMAT, VERSION = "taskweaver-receipt", 1
MAX_BYTES = 48 << 20
MAX_CELLS = 5_000
_TEXTS = ("session_id", "branch", "written_at", "question")
_CELL_TEXTS = ("post_id", "role", "code", "report")

T = TypeVar("T")
_SHOWN_CHARS = 200
_EXCEPTION = "Traceback (most recent call last)"
_COUNTED = frozenset({"Result", "Output"})

Kind = Literal["input", "cell", "answer"]


class ReceiptError(SessionError):
    """A receipt cannot be written, read or checked."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file the cells read.

    Attributes:
        name: Its name in the working directory.
        bytes: Its size.
        sha256: Hash of its content, in hexadecimal digits.
        change: Where it was changed after it was added; empty if it was not.
        content: Its content in base64; None for a file over the limit.
    """

    name: str
    bytes: int
    sha256: str
    change: str = ""
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """An answer with everything that is needed to compute it again.

    Attributes:
        session_id: The session it was given in.
        branch: The branch.
        written_at: When the receipt was written, in ISO 8601.
        question: The request, with the notes on files that came with it.
        reading: How the request was understood: plan and orders.
        answer: The answer with the evidence for its numbers.
        cells: The cells that ran up to the answer, with their outcomes.
        inputs: The files the user added.
        versions: Versions of Python, TaskWeaver and the libraries the cells import.
    """

    session_id: str
    branch: str
    written_at: str
    question: str
    reading: Mapping[str, Any]
    answer: RoundAnswer
    cells: tuple[ExecutedCell, ...]
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]


def write_receipt(path: Path, receipt: Receipt) -> None:
    """Write a receipt, all of it or nothing.

    Raises:
        ReceiptError: If it cannot be written.
    """
    answer = {"text": receipt.answer.text, **receipt.answer.finding()}
    data = {"format": FORMAT, "version": VERSION, **asdict(receipt), "answer": answer}
    try:
        write_text(path, json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise ReceiptError(f"{path} cannot be written: {error.strerror}") from error


def read_receipt(path: Path) -> Receipt:
    """Read a receipt.

    Raises:
        ReceiptError: If the file is no receipt, of a newer format, or holds a masked cell.
    """
    try:
        data = read_json(path, MAX_BYTES)
    except OSError as error:
        raise ReceiptError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ReceiptError(f"{path.name} is no receipt: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReceiptError(f"{path.name} is no receipt of TaskWeaver.")
    version = data.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise ReceiptError(
            f"{path.name} has format version {version!r}; this program reads up to {VERSION}."
        )
    try:
        json.dumps(data, ensure_ascii=False).encode()  # half a surrogate pair is no text
        receipt = _receipt(data)
    except (KeyError, TypeError, ValueError) as error:
        raise ReceiptError(f"{path.name} is malformed: {_reason(error)}") from error
    if not any(cell.is_success for cell in receipt.cells):
        raise ReceiptError(f"{path.name} holds no cell that ran to its end.")
    refuse_masked(receipt.cells)
    return receipt


def refuse_masked(cells: Sequence[ExecutedCell]) -> None:
    """Raise if code holds the mask of a secret: a masked text is a copy and never runs.

    Raises:
        ReceiptError: If a cell holds it; the text names the cell.
    """
    masked = next((cell.number for cell in cells if MASK in cell.code), None)
    if masked is not None:
        raise ReceiptError(
            f"Cell {masked} holds the mask of a secret ({MASK}), so it is not the code that ran."
            " Let the code read the secret from its source, and ask again."
        )


def _reason(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _receipt(data: Mapping[str, Any]) -> Receipt:
    answer = _of(data, "answer", dict)
    cells = tuple(map(_cell, _of(data, "cells", list)))
    inputs = tuple(map(_input, _of(data, "inputs", list)))
    names = [item.name for item in inputs]
    if len(cells) > MAX_CELLS or len(set(names)) < len(names):
        raise ValueError("it has too many cells, or an input twice")
    found = RoundAnswer.from_finding(_of(answer, "text", str), answer)
    return Receipt(
        **{name: _of(data, name, str) for name in _TEXTS},
        reading=_of(data, "reading", dict),
        answer=found,
        cells=cells,
        inputs=inputs,
        versions={_line(k): _line(v) for k, v in _of(data, "versions", dict).items()},
    )


def _cell(data: object) -> ExecutedCell:
    fields = _mapping(data)
    pairs = [(str(name), str(text)) for name, text in _of(fields, "variables", list)]
    return ExecutedCell(
        number=_of(fields, "number", int),
        is_success=_of(fields, "is_success", bool),
        **{name: _of(fields, name, str) for name in _CELL_TEXTS},
        variables=tuple(pairs),
        artifacts=tuple(map(str, _of(fields, "artifacts", list))),
    )


def _input(data: object) -> Input:
    fields = _mapping(data)
    name, content = _of(fields, "name", str), fields["content"]
    if not is_plain_name(name):
        raise ValueError(f"{name!r} is not the name of an input")
    if content is not None and not isinstance(content, str):
        raise TypeError(f"the content of {name!r} is no text")
    size, digest = _of(fields, "bytes", int), _of(fields, "sha256", str)
    return Input(name, size, digest, _line(fields["change"]), content)


def _line(value: object) -> str:
    """Return a text that is shown in a line."""
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"{value!r} is not a text of one line")
    return value


def _mapping(data: object) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise TypeError(f"{type(data).__name__} stands where an object belongs")
    return data


def _of(data: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = data[name]
    if type(value) is not kind:
        raise TypeError(f"{name!r} is {type(value).__name__}, not {kind.__name__}")
    return value


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


Run = Callable[[ExecutedCell], Ran]


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
        again = replace(
            cell, report=redact_secrets(outcome.report), variables=tuple(outcome.variables.items())
        )
        sources = [*cell_sources(again), *sources]
    return _answer_compared(receipt, sources)


def _cell_difference(cell: ExecutedCell, outcome: Ran) -> ReceiptDifference | None:
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


def _variable_differences(cell: ExecutedCell, outcome: Ran) -> Iterator[LineDifference]:
    """Yield the variables that are in both lists and differ."""
    now = {name: redact_secrets(text) for name, text in outcome.variables.items()}
    for name, old in cell.variables:
        new = now.get(name, old)
        if any(differing_lines(f"### Result\n{old}", f"### Result\n{new}")):
            yield LineDifference(f"Variables, {name}", 0, old, new)


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
