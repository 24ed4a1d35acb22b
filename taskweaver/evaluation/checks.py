"""Checks of answers, code and files. A check is met, or names the problem."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from taskweaver.evaluation.forms import Many, Pattern, StrictForm, Words
from taskweaver.memory.cells import ExecutedCell
from taskweaver.session.answers.numbers import numbers_in
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.text import shorten_words, unfenced

_MOST_CHARS, _MOST_BYTES = 100_000, 4 << 20
_SHOWN_CHARS = 160
_MOST_ROUNDED, _ROUNDING_ERROR = 0.01, 1e-9
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)
_FIGURES = (".png", ".svg", ".jpg", ".jpeg", ".pdf")


@dataclass(frozen=True, slots=True)
class Observed:
    """Facts of a round, or of all rounds of a case.

    Attributes:
        answer: Text of the answer; of several rounds that of the last.
        unsupported: Numbers of the answer that stand in no outcome.
        is_answered: Whether each round ended with an answer.
        cells: Cells that ran.
        refusals: Number of cells that were refused before they ran.
        roles: Aliases of the roles that took part, sorted.
        artifacts: Names of the files that cells made, relative to `cwd`.
        cwd: Working directory of the session.
        prompts: Prompts of the model calls, as text.
        holds: Evaluates an expression in the kernel; returns the problem, empty for none.
        judge: Asks a model whether a statement is true; returns the reason of a no, else nothing.
    """

    answer: str
    unsupported: tuple[str, ...]
    is_answered: bool
    cells: tuple[ExecutedCell, ...]
    refusals: int
    roles: tuple[str, ...]
    artifacts: tuple[str, ...]
    cwd: Path
    prompts: tuple[str, ...]
    holds: Callable[[str], str]
    judge: Callable[[str], str]

    @property
    def code(self) -> str:
        """The code of all cells that ran."""
        return "\n".join(cell.code for cell in self.cells)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of model calls, cells, failed cells and figures."""
        return {
            "calls": len(self.prompts),
            "cells": len(self.cells),
            "failed_cells": sum(not cell.is_success for cell in self.cells),
            "figures": len({name for name in self.artifacts if name.lower().endswith(_FIGURES)}),
        }


class NumberCheck(StrictForm):
    """A number of the answer. The default tolerance is half of the last digit, at most 1 %."""

    value: float
    within: float | None = None

    def __str__(self) -> str:
        return f"{self.value:g}"


class CountCheck(StrictForm):
    """Bounds on a number of things."""

    least: int = 0
    most: int | None = None


class FileCheck(StrictForm):
    """A file of the working directory, with the columns and rows of a CSV table."""

    name: Words
    matches: Pattern | None = None
    columns: Many[str] = ()
    rows: int | None = None

    def __str__(self) -> str:
        return self.name


def _short(*names: str) -> BeforeValidator:
    """Let a value alone stand for fields."""

    def read(value: Any) -> Any:
        return value if isinstance(value, dict) else dict.fromkeys(names, value)

    return BeforeValidator(read)


_Counts = Many[Annotated[CountCheck, _short("least", "most")]]


class Check(StrictForm):
    """Checks of one mapping, by kind."""

    number: Many[Annotated[NumberCheck, _short("value")]] = ()
    contains: Many[Words] = ()
    lacks: Many[Words] = ()
    matches: Many[Pattern] = ()
    matches_not: Many[Pattern] = ()
    as_json: Many[dict[str, Any]] = Field((), alias="json")
    supported: Many[bool] = ()
    answered: Many[bool] = ()
    judge: Many[Words] = ()
    file: Many[Annotated[FileCheck, _short("name")]] = ()
    no_file: Many[Words] = ()
    code: Many[Pattern] = ()
    code_not: Many[Pattern] = ()
    code_ran: Many[bool] = ()
    refused: Many[bool] = ()
    role: Many[Words] = ()
    prompt: Many[Words] = ()
    prompt_not: Many[Words] = ()
    holds: Many[Words] = ()
    calls: _Counts = ()
    cells: _Counts = ()
    failed_cells: _Counts = ()
    figures: _Counts = ()

    def problems(self, seen: Observed) -> Iterator[str]:
        """Yield the problem of each check, an empty text for a check that is met.

        Raises:
            TaskWeaverError: If a check cannot be made.
        """
        for kind in type(self).model_fields:
            for wanted in getattr(self, kind):
                reason = _reason(kind, wanted, seen)
                check = f"{kind.removeprefix('as_')}: {getattr(wanted, 'pattern', wanted)}"
                yield reason and not_met(check, reason)


def not_met(check: str, reason: str) -> str:
    """Return the problem of a check that is not met."""
    return f"'{shown(check)}' is not met; {reason}"


def shown(text: str) -> str:
    """Return the beginning of a text on one line."""
    return shorten_words(text, _SHOWN_CHARS) or "nothing"


def _reason(kind: str, wanted: Any, seen: Observed) -> str:
    """Return the reason why a check is not met, or an empty text."""
    match kind:
        case "file":
            return _file_problem(wanted, seen)
        case "judge":
            return seen.judge(wanted)
        case "holds":
            return seen.holds(wanted)
    is_met, fact = _RULES[_OPPOSITES.get(kind, kind)]
    if is_met(wanted, seen) is not (kind in _OPPOSITES):
        return ""
    return f"{fact}: {shown(str(getattr(seen, fact)))}"


def _has_number(wanted: NumberCheck, seen: Observed) -> bool:
    size = abs(wanted.value)
    for number in numbers_in(seen.answer[:_MOST_CHARS]):
        sign = number.sign or math.copysign(1, wanted.value)
        for reading in (*number.readings, *number.plain):
            rounded = min(reading.step / 2, size * _MOST_ROUNDED) + size * _ROUNDING_ERROR
            within = rounded if wanted.within is None else wanted.within + _ROUNDING_ERROR
            if abs(sign * reading.value - wanted.value) <= within:
                return True
    return False


def _has_json(wanted: dict[str, Any], seen: Observed) -> bool:
    found = _OBJECT.search(unfenced(seen.answer[:_MOST_CHARS]))
    try:
        data = json.loads(found[0]) if found else None
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and all(
        name in data and _is_same(data[name], value) for name, value in wanted.items()
    )


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, float | int) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=_ROUNDING_ERROR)
    return one == other


def _content(seen: Observed, name: str) -> str | None:
    """Return the beginning of a file in a folder that sandboxed code can write, or None."""
    try:
        with Folder.at(seen.cwd.resolve()) as folder, folder.open_file(name) as file:
            return str(file.read(_MOST_BYTES).decode("utf-8-sig", "replace"))
    except OSError:
        return None


def _file_problem(wanted: FileCheck, seen: Observed) -> str:
    text = _content(seen, wanted.name)
    if text is None:
        return "there is no such file"
    if wanted.matches is not None and not wanted.matches.search(text):
        return f"the file does not match {wanted.matches.pattern!r}: {shown(text)}"
    return _table_problem(wanted, text) if wanted.columns or wanted.rows is not None else ""


def _table_problem(wanted: FileCheck, text: str) -> str:
    try:
        header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except (csv.Error, ValueError) as error:
        return f"the file is no CSV table: {error}"
    missing = [column for column in wanted.columns if column not in header]
    if missing:
        return f"the file lacks the columns {', '.join(missing)}; it has {', '.join(header)}"
    is_met = wanted.rows in (None, len(rows))
    return "" if is_met else f"the file has {len(rows)} rows, not {wanted.rows}"


def _matches(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text[:_MOST_CHARS]) is not None


def _is_within(wanted: CountCheck, seen: Observed, *, kind: str) -> bool:
    count = seen.counts[kind]
    return wanted.least <= count and (wanted.most is None or count <= wanted.most)


_RULES: dict[str, tuple[Callable[[Any, Observed], bool], str]] = {
    "number": (_has_number, "answer"),
    "contains": (lambda text, seen: text.casefold() in seen.answer.casefold(), "answer"),
    "matches": (lambda pattern, seen: _matches(pattern, seen.answer), "answer"),
    "as_json": (_has_json, "answer"),
    "supported": (lambda wanted, seen: not (wanted and seen.unsupported), "unsupported"),
    "answered": (lambda wanted, seen: wanted == seen.is_answered, "answer"),
    "no_file": (lambda name, seen: _content(seen, name) is None, "artifacts"),
    "code": (lambda pattern, seen: _matches(pattern, seen.code), "code"),
    "code_ran": (lambda wanted, seen: wanted == bool(seen.cells), "code"),
    "refused": (lambda wanted, seen: wanted == bool(seen.refusals), "refusals"),
    "role": (lambda alias, seen: alias in seen.roles, "roles"),
    "prompt": (lambda text, seen: any(text in prompt for prompt in seen.prompts), "prompts"),
    **{
        kind: (partial(_is_within, kind=kind), "counts")
        for kind in ("calls", "cells", "failed_cells", "figures")
    },
}
"""The rule of each kind of check, and the fact that is shown where a check is not met."""

_OPPOSITES = {
    "lacks": "contains", "matches_not": "matches", "code_not": "code", "prompt_not": "prompt",
}  # fmt: skip
"""Kinds that are met where another kind is not."""
