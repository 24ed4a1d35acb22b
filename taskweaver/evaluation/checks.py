"""Checks of answers, code and files. Each is met, or names its problem."""

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
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from taskweaver.evaluation.forms import Many, Pattern, StrictForm, Words
from taskweaver.memory.reading.cells import ExecutedCell
from taskweaver.session.answers.numbers import Number, numbers_in
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.text import shorten, unfenced

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
        roles: Aliases of the roles that took part.
        artifacts: Names of the files that cells made, relative to `cwd`.
        cwd: Working directory of the session.
        prompts: Prompts of the model calls, as text.
    """

    answer: str
    unsupported: tuple[str, ...]
    is_answered: bool
    cells: tuple[ExecutedCell, ...]
    refusals: int
    roles: frozenset[str]
    artifacts: tuple[str, ...]
    cwd: Path
    prompts: tuple[str, ...]

    @property
    def code(self) -> str:
        """The code of all cells that ran."""
        return "\n".join(cell.code for cell in self.cells)

    def count(self, kind: str) -> int:
        """Count the ``calls`` of a model, ``cells``, ``failed_cells`` or ``figures``."""
        counts = {
            "calls": len(self.prompts),
            "cells": len(self.cells),
            "failed_cells": sum(not cell.is_success for cell in self.cells),
            "figures": len({name for name in self.artifacts if name.lower().endswith(_FIGURES)}),
        }
        return counts[kind]


@dataclass(frozen=True, slots=True)
class Examiner:
    """Ways to find out more than the conversation shows.

    Attributes:
        holds: Evaluates a Python expression in the kernel; returns the problem, empty for none.
        judge: Asks a model whether a statement agrees with the conversation; returns the problem.
    """

    holds: Callable[[str], str]
    judge: Callable[[str], str]


class NumberCheck(StrictForm):
    """A number of the answer; without a tolerance as exact as the answer shows it, up to 1 %."""

    value: float
    within: float | None = None

    def tolerance(self, step: float) -> float:
        """Return the largest difference from a number that is shown in steps."""
        if self.within is not None:
            return self.within + _ROUNDING_ERROR
        rounded = min(step / 2, abs(self.value) * _MOST_ROUNDED)
        return rounded + abs(self.value) * _ROUNDING_ERROR


class CountCheck(StrictForm):
    """Bounds on a number of things."""

    least: int = 0
    most: int | None = None


class FileCheck(StrictForm):
    """A file of the working directory; the columns and rows are those of a CSV table."""

    name: Words
    matches: Pattern | None = None
    columns: Many[str] = ()
    rows: int | None = None


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

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("is empty")
        return self

    def problems(self, seen: Observed, examiner: Examiner) -> Iterator[str]:
        """Yield the problem of each check; empty for one that is met.

        Raises:
            TaskWeaverError: If a check cannot be made.
        """
        for kind, find in _FINDERS.items():
            for wanted in getattr(self, kind):
                problem = find(wanted, seen, examiner)
                is_moot = problem and not seen.answer and kind in _OF_ANSWERS
                yield f"there is no answer to check: {problem}" if is_moot else problem


def shown(text: str) -> str:
    """Return the beginning of a text on one line."""
    return shorten(" ".join(text.split()), _SHOWN_CHARS) or "nothing"


def _is(found: bool, wanted: bool, absent: str, present: str) -> str:  # noqa: FBT001
    """Return the problem of a fact; empty if it is as wanted."""
    if found == wanted:
        return ""
    return absent if wanted else present


def _number(wanted: NumberCheck, seen: Observed, _: Examiner) -> str:
    def fits(number: Number) -> bool:
        sign = math.copysign(1, wanted.value) if number.sign == 0 else number.sign
        return any(
            abs(sign * reading.value - wanted.value) <= wanted.tolerance(reading.step)
            for reading in (*number.readings, *number.plain)
        )

    if any(map(fits, numbers_in(seen.answer[:_MOST_CHARS]))):
        return ""
    return f"the number {wanted.value:g} is not in the answer: {shown(seen.answer)}"


def _text(text: str, seen: Observed, _: Examiner, *, is_wanted: bool) -> str:
    is_there = text.casefold() in seen.answer.casefold()
    end = f"the answer: {shown(seen.answer)}"
    return _is(is_there, is_wanted, f"{text!r} is not in {end}", f"{text!r} must not be in {end}")


def _pattern(
    pattern: re.Pattern[str], seen: Observed, _: Examiner, *, is_wanted: bool, is_code: bool = False
) -> str:
    what, text = ("the code that ran", seen.code) if is_code else ("the answer", seen.answer)
    is_there = pattern.search(text[:_MOST_CHARS]) is not None
    end = f"match {pattern.pattern!r}: {shown(text)}"
    return _is(is_there, is_wanted, f"{what} does not {end}", f"{what} must not {end}")


def _json(wanted: dict[str, Any], seen: Observed, _: Examiner) -> str:
    found = _OBJECT.search(unfenced(seen.answer[:_MOST_CHARS]))
    try:
        data = json.loads(found[0]) if found else None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        return f"the answer is not one JSON object: {shown(seen.answer)}"
    for name, value in wanted.items():
        other = data.get(name)
        is_same = name in data and other == value
        if isinstance(value, float | int) and isinstance(other, float | int):
            is_same = math.isclose(other, value, rel_tol=1e-6, abs_tol=_ROUNDING_ERROR)
        if not is_same:
            return f"{name!r} of the answer is {other!r}, not {value!r}"
    return ""


def _supported(wanted: bool, seen: Observed, _: Examiner) -> str:  # noqa: FBT001
    if not (wanted and seen.unsupported):
        return ""
    return f"numbers of the answer stand in no outcome: {', '.join(seen.unsupported)}"


def _content(seen: Observed, name: str) -> str | None:
    """Return the beginning of a file, which sandboxed code can write; None if there is none."""
    try:
        with Folder.at(seen.cwd.resolve()) as folder, folder.open_file(name) as file:
            return str(file.read(_MOST_BYTES).decode("utf-8-sig", "replace"))
    except OSError:
        return None


def _file(wanted: FileCheck, seen: Observed, _: Examiner) -> str:
    name, text = wanted.name, _content(seen, wanted.name)
    if text is None:
        return f"there is no file {name}"
    if wanted.matches is not None and not wanted.matches.search(text):
        return f"{name} does not match {wanted.matches.pattern!r}: {shown(text)}"
    return _table(wanted, text) if wanted.columns or wanted.rows is not None else ""


def _table(wanted: FileCheck, text: str) -> str:
    name = wanted.name
    try:
        header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except (csv.Error, ValueError) as error:
        return f"{name} is no CSV table: {error}"
    missing = [column for column in wanted.columns if column not in header]
    if missing:
        return f"{name} lacks the columns {', '.join(missing)}; it has {', '.join(header)}"
    if wanted.rows is not None and len(rows) != wanted.rows:
        return f"{name} has {len(rows)} rows, not {wanted.rows}"
    return ""


def _prompt(text: str, seen: Observed, _: Examiner, *, is_wanted: bool) -> str:
    is_there = any(text in prompt for prompt in seen.prompts)
    return _is(is_there, is_wanted, f"{text!r} is in no prompt", f"{text!r} is in a prompt")


def _count(wanted: CountCheck, seen: Observed, _: Examiner, *, kind: str) -> str:
    count = seen.count(kind)
    if wanted.least <= count and (wanted.most is None or count <= wanted.most):
        return ""
    bound = f"at least {wanted.least}" if count < wanted.least else f"at most {wanted.most}"
    return f"{kind.replace('_', ' ')}: {count}, not {bound}"


_FINDERS: dict[str, Callable[[Any, Observed, Examiner], str]] = {
    "answered": lambda wanted, seen, _: _is(
        seen.is_answered, wanted, "there is no answer", f"it is answered: {shown(seen.answer)}"
    ),
    "number": _number,
    "contains": partial(_text, is_wanted=True),
    "lacks": partial(_text, is_wanted=False),
    "matches": partial(_pattern, is_wanted=True),
    "matches_not": partial(_pattern, is_wanted=False),
    "as_json": _json,
    "supported": _supported,
    "judge": lambda statement, _, examiner: examiner.judge(statement),
    "file": _file,
    "no_file": lambda name, seen, _: _is(
        _content(seen, name) is not None, False, "", f"there is a file {name}"
    ),
    "code": partial(_pattern, is_wanted=True, is_code=True),
    "code_not": partial(_pattern, is_wanted=False, is_code=True),
    "code_ran": lambda wanted, seen, _: _is(
        bool(seen.cells), wanted, "no code ran", f"code ran: {shown(seen.code)}"
    ),
    "refused": lambda wanted, seen, _: _is(
        bool(seen.refusals), wanted, "no code was refused", f"{seen.refusals} cells were refused"
    ),
    "role": lambda alias, seen, _: _is(
        alias in seen.roles,
        True,
        f"{alias} took no part; there were {', '.join(sorted(seen.roles))}",
        "",
    ),
    "prompt": partial(_prompt, is_wanted=True),
    "prompt_not": partial(_prompt, is_wanted=False),
    "holds": lambda expression, _, examiner: examiner.holds(expression),
    **{kind: partial(_count, kind=kind) for kind in ("calls", "cells", "failed_cells", "figures")},
}
"""The function that finds the problem, by kind of check."""

_OF_ANSWERS = frozenset("number contains lacks matches matches_not as_json supported judge".split())
