"""The file a run writes its metric to: hostile data until it is checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taskweaver.treesearch.execution.takeover import read_inside
from taskweaver.treesearch.model.node import NodeError
from taskweaver.treesearch.model.phase_plan import RESULT_FILE

_MAX_BYTES = 1 << 20
_MOST_DATASETS = 1000
_LONGEST_NAME = 200


class BadResult(Exception):
    """A result that is none, or says itself that it is not valid; its error is that of the node."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.error = NodeError(kind, message)


def read_result(workspace: Path) -> Mapping[str, Any] | None:
    """Return ``metric`` (a number, or one per data set), ``valid`` and ``details``; None for none.

    Numbers may be NaN or infinite: whether they count is for the caller to judge.

    Raises:
        BadResult: ``MetricError`` when it is no result, ``ValidityError`` when it says it is not
            valid.
    """
    try:
        data = read_inside(workspace, RESULT_FILE, _MAX_BYTES)
        if data is None:
            return None
        result = json.loads(data.decode("utf-8-sig"))
        json.dumps(result, ensure_ascii=False).encode()  # halves of surrogate pairs
    except (ValueError, RecursionError) as error:
        raise bad_result(RESULT_FILE, f"cannot be read: {error}") from error
    return checked_result(result, RESULT_FILE)


def checked_result(result: object, place: str) -> Mapping[str, Any]:
    """Return a result, as `read_result`; `place` is where it stands, for messages.

    Raises:
        BadResult: As `read_result`.
    """
    if not isinstance(result, dict):
        raise bad_result(place, f"must hold an object, not {type(result).__name__}")
    valid = result.get("valid", True)
    details = result.get("details") or {}
    if not isinstance(valid, bool):
        raise bad_result(place, f"valid must be true or false, not {valid!r:.60}")
    if not isinstance(details, dict):
        raise bad_result(place, f"details must be an object, not {details!r:.60}")
    if not valid:
        reason = json.dumps(details, ensure_ascii=False)
        raise BadResult("ValidityError", f"The run says its result is not valid: {reason:.2000}")
    return {"metric": _metric(result.get("metric"), place), "valid": True, "details": details}


def _metric(value: object, place: str) -> float | dict[str, float]:
    if not isinstance(value, dict):
        return _number("metric", value, place)
    if not 0 < len(value) <= _MOST_DATASETS:
        raise bad_result(
            place, f"metric must hold 1 to {_MOST_DATASETS} data sets, not {len(value)}"
        )
    long = next((name for name in value if len(name) > _LONGEST_NAME), None)
    if long is not None:
        raise bad_result(place, f"metric has a data set with a name that is too long: {long:.60}")
    return {name: _number(f"metric of {name}", number, place) for name, number in value.items()}


def _number(what: str, value: object, place: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise bad_result(place, f"{what} must be a number, not {value!r:.60}")
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def bad_result(place: str, problem: str) -> BadResult:
    """Return the error of a result that is none."""
    return BadResult("MetricError", f"{place}: {problem}")
