"""Reading of checks: each is a mapping of one name, the kind of the check, to its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from taskweaver.evaluation.checks.answers import (
    AnsweredCheck,
    JsonCheck,
    JudgeCheck,
    NumberCheck,
    PatternCheck,
    SupportCheck,
    WordsCheck,
)
from taskweaver.evaluation.checks.check import Check
from taskweaver.evaluation.checks.files import FileCheck, NoFileCheck
from taskweaver.evaluation.checks.work import (
    CodeCheck,
    CountCheck,
    Counted,
    PromptCheck,
    RefusalCheck,
    RoleCheck,
    RunCheck,
    StateCheck,
)
from taskweaver.evaluation.errors import EvaluationError
from taskweaver.evaluation.fields import CaseFields, nearest

_Reader = Callable[[Any, str], Check]


def read_checks(items: list[Any], place: str, *, is_at_end: bool) -> tuple[Check, ...]:
    """Read a list of checks.

    Args:
        items: The list, as the file has it.
        place: The file and the place in it, for errors.
        is_at_end: Whether they are made after the last step, when a cell changes no prompt.

    Raises:
        EvaluationError: If a check is not known, or its arguments do not fit it.
    """
    return tuple(
        check
        for number, item in enumerate(items, start=1)
        for check in _read(item, f"{place}, check {number}", is_at_end=is_at_end)
    )


def _read(item: object, place: str, *, is_at_end: bool) -> Iterator[Check]:
    fields = CaseFields(item, place)
    if not fields.data:
        raise EvaluationError(place, "is empty.")
    for kind, value in fields.data.items():
        reader = _READERS.get(kind)
        if reader is None:
            raise EvaluationError(place, f"{kind!r} is no check; {nearest(kind, _READERS)}")
        if kind == "holds" and not is_at_end:
            raise EvaluationError(place, "'holds' runs a cell: it belongs to the checks of a case.")
        values = value if isinstance(value, list) and kind != "json" else [value]
        for each in values:
            yield reader(each, f"{place}, {kind}")


def _text(value: object, place: str) -> str:
    if not isinstance(value, str | int | float) or isinstance(value, bool) or value == "":
        raise EvaluationError(place, f"is {value!r}, not a text.")
    return str(value)


def _pattern(value: object, place: str) -> re.Pattern[str]:
    try:
        return re.compile(_text(value, place), re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        raise EvaluationError(place, f"is no regular expression: {error}.") from error


def _flag(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise EvaluationError(place, f"is {value!r}, not true or false.")
    return value


def _number(value: object, place: str) -> Check:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return NumberCheck(float(value))
    fields = CaseFields(value, place, ("value", "within"))
    if "value" not in fields.data:
        raise fields.error("value", "is missing.")
    within = fields.number("within", -1.0)
    return NumberCheck(fields.number("value", 0.0), within if within >= 0 else None)


def _count(counted: Counted) -> _Reader:
    def read(value: object, place: str) -> Check:
        if isinstance(value, int) and not isinstance(value, bool):
            return CountCheck(counted, value, value)
        fields = CaseFields(value, place, ("least", "most"))
        most = fields.number("most", -1)
        return CountCheck(counted, int(fields.number("least", 0)), int(most) if most >= 0 else None)

    return read


def _file(value: object, place: str) -> Check:
    if isinstance(value, str):
        return FileCheck(_text(value, place))
    fields = CaseFields(value, place, ("name", "matches", "columns", "rows"))
    matches = fields.text("matches", "")
    rows = fields.number("rows", -1)
    return FileCheck(
        fields.text("name"),
        _pattern(matches, place) if matches else None,
        tuple(fields.texts("columns")),
        int(rows) if rows >= 0 else None,
    )


def _supported(value: object, place: str) -> Check:
    if value is not True:
        raise EvaluationError(place, "is true, or not there.")
    return SupportCheck()


_READERS: dict[str, _Reader] = {
    "number": _number,
    "contains": lambda value, place: WordsCheck(_text(value, place), is_wanted=True),
    "lacks": lambda value, place: WordsCheck(_text(value, place), is_wanted=False),
    "matches": lambda value, place: PatternCheck(_pattern(value, place), is_wanted=True),
    "matches_not": lambda value, place: PatternCheck(_pattern(value, place), is_wanted=False),
    "json": lambda value, place: JsonCheck(CaseFields(value, place).data),
    "supported": _supported,
    "answered": lambda value, place: AnsweredCheck(_flag(value, place)),
    "judge": lambda value, place: JudgeCheck(_text(value, place)),
    "file": _file,
    "no_file": lambda value, place: NoFileCheck(_text(value, place)),
    "code": lambda value, place: CodeCheck(_pattern(value, place), is_wanted=True),
    "code_not": lambda value, place: CodeCheck(_pattern(value, place), is_wanted=False),
    "code_ran": lambda value, place: RunCheck(_flag(value, place)),
    "refused": lambda value, place: RefusalCheck(_flag(value, place)),
    "role": lambda value, place: RoleCheck(_text(value, place)),
    "prompt": lambda value, place: PromptCheck(_text(value, place), is_wanted=True),
    "prompt_not": lambda value, place: PromptCheck(_text(value, place), is_wanted=False),
    "holds": lambda value, place: StateCheck(_text(value, place)),
    "calls": _count("calls"),
    "cells": _count("cells"),
    "failed_cells": _count("failed_cells"),
    "figures": _count("figures"),
}
