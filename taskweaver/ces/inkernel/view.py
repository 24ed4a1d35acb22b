"""Views of a kernel's variables: a list with sizes, and pages of tables as JSON.

Views run code of the objects that they show, and change nothing by themselves.
"""

from __future__ import annotations

import datetime
import math
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from taskweaver.ces.inkernel.cell.values import bounded_repr, describe, shown_variables
from taskweaver.ces.inkernel.state.placeholder import LostObject
from taskweaver.ces.inkernel.state.placeholder import describe as describe_lost
from taskweaver.ces.inkernel.timelimit import TooSlow, time_limit
from taskweaver.ces.inkernel.viewed_tables import ViewProblem, library_of, select, table_of

MOST_CHARS = 500
"""Most characters of a value; of a longer text its beginning and its length are given."""

_LARGEST = 1 << 53
"""Larger integers are no exact numbers in JavaScript."""
_MISSING = {"NaTType", "NAType"}
_MOST_BITS = 10_000
_TIMES = (datetime.datetime, datetime.date, datetime.time)
MOST_VARIABLES = 1_000
MOST_ROWS, MOST_COLUMNS = 200, 50
_LIMIT_S = 20.0

Payload = dict[str, Any]
Variables = Mapping[str, Any]


def cell_value(value: Any, kind: str, *, is_nan_missing: bool) -> Any:
    """Return a value for JSON.

    Null is a missing value. Values that JSON cannot hold are objects with ``type`` and ``text``;
    times and durations in a column of their `kind` are texts.

    Args:
        value: The value.
        kind: Kind of its column.
        is_nan_missing: Whether a float that is no number is a missing value.
    """
    if value is None or type(value).__name__ in _MISSING:
        return None
    found = _plain(value)
    if type(found) in _EXACT:
        return _EXACT[type(found)](found, is_nan_missing)
    if isinstance(found, _TIMES):
        return _of_kind("time", _said(found.isoformat), kind)
    if isinstance(found, datetime.timedelta):
        return _of_kind("duration", _said(lambda: str(found)), kind)
    name = type(found).__name__
    return _tagged(name[:MOST_CHARS], _said(lambda: _other(found)))


def _plain(value: Any) -> Any:
    """Return the plain value of one of NumPy."""
    is_numpy = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    return value.item() if is_numpy and value.dtype.kind not in "mM" else value


def _number(value: float, is_nan_missing: bool) -> Any:  # noqa: FBT001 - one of `_EXACT`
    if math.isfinite(value):
        return value
    return None if math.isnan(value) and is_nan_missing else _tagged("number", repr(value))


def _digits(value: int) -> str:
    if value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length():,} bits"
    text = hex(value) if value.bit_length() > _MOST_BITS // 4 else str(value)
    return text[:MOST_CHARS]


def _other(value: Any) -> str:
    if type(value).__module__.partition(".")[0] in {"decimal", "uuid", "fractions"}:
        return str(value)
    return bounded_repr(value, MOST_CHARS)


def _of_kind(own: str, text: str, kind: str) -> Any:
    return text if kind == own else _tagged(own, text)


def _tagged(kind: str, text: str) -> dict[str, str]:
    return {"type": kind, "text": text}


def _said(say: Callable[[], str]) -> str:
    try:
        return str(say())[:MOST_CHARS]
    except Exception as error:  # noqa: BLE001 - a repr is the user's code and may raise anything
        return f"<cannot be shown: {type(error).__name__}>"


_EXACT: dict[type, Callable[[Any, bool], Any]] = {
    bool: lambda value, _: value,
    int: lambda value, _: value if abs(value) <= _LARGEST else _tagged("integer", _digits(value)),
    float: _number,
    str: lambda value, _: (
        value
        if len(value) <= MOST_CHARS
        else {"type": "text", "text": value[:MOST_CHARS], "length": len(value)}
    ),
}
"""Forms of plain values: functions of a value, and whether a float that is no number is missing."""


def view(payload: Mapping[str, Any], namespace: Variables, hidden: frozenset[str]) -> Payload:
    """Return a view, or the ``problem`` with ``kind`` and ``text``.

    Args:
        payload: ``view``, which is ``variables`` or ``page``, and its arguments.
        namespace: The kernel's namespace.
        hidden: Names that are not the user's.
    """
    try:
        with time_limit(_LIMIT_S):
            if payload["view"] == "variables":
                return {"variables": list(_variables(namespace, hidden))}
            return _page(payload, namespace, hidden)
    except ViewProblem as error:
        return _problem(error.kind, str(error))
    except TooSlow:
        return _problem("slow", f"It took more than {_LIMIT_S:.0f} s.")
    except KeyboardInterrupt:
        return _problem("slow", "It was given up.")
    except Exception as error:  # noqa: BLE001 - values are the user's objects; the reason is told
        return _problem("invalid", f"{type(error).__name__}: {error}"[:300])


def _problem(kind: str, text: str) -> Payload:
    return {"problem": {"kind": kind, "text": text}}


def _variables(namespace: Variables, hidden: frozenset[str]) -> Iterator[Payload]:
    for name, value in shown_variables(namespace, hidden)[-MOST_VARIABLES:]:
        yield {
            "name": name,
            "type": type(value).__name__,
            "text": describe(value),
            "shape": _shape(value),
            "bytes": _bytes(value),
            "is_table": bool(library_of(value)),
        }


def _shape(value: Any) -> list[int] | None:
    shape = getattr(value, "shape", None) if not isinstance(value, types.SimpleNamespace) else None
    if isinstance(shape, tuple) and all(isinstance(side, int) for side in shape):
        return list(shape)
    is_sized = isinstance(value, list | tuple | dict | set | frozenset | str | bytes)
    return [len(value)] if is_sized else None


def _bytes(value: Any) -> int | None:
    """Return the size of a value in memory, without objects referred to."""
    try:
        if hasattr(type(value), "memory_usage"):
            used = value.memory_usage(deep=False)
            return int(used if isinstance(used, int) else used.sum())
        for name in ("nbytes", "estimated_size"):
            size = getattr(value, name, None)
            if size is not None:
                return int(size() if callable(size) else size)
        return sys.getsizeof(value)
    except Exception:  # noqa: BLE001 - the user's code; the size is left out
        return None


def _page(payload: Mapping[str, Any], namespace: Variables, hidden: frozenset[str]) -> Payload:
    name = payload["name"]
    if name in hidden or name not in namespace:
        raise ViewProblem("missing", f"There is no variable {name!r:.100}.")
    value = namespace[name]
    if type(value) is LostObject:
        raise ViewProblem("missing", f"{name!r:.100}: {describe_lost(value)}.")
    table = table_of(value)
    rows, columns = table.shape
    filters, order = payload["filters"], payload["order"]
    found: Any = select(table, filters, order) if filters or order else range(rows)
    first, count = payload["first_row"], min(payload["rows"], MOST_ROWS)
    positions = list(map(int, found[first : first + count]))
    begin = payload["first_column"]
    numbers = range(begin, min(columns, begin + min(payload["columns"], MOST_COLUMNS)))
    shown = [table.column(number) for number in numbers]
    options = {"is_nan_missing": table.is_nan_missing}
    by_column = [
        [cell_value(one, column.kind, **options) for one in table.values(number, positions)]
        for number, column in zip(numbers, shown, strict=True)
    ]
    labels = [
        [cell_value(one, "object", **options) for one in level] for level in table.labels(positions)
    ]
    return {
        "rows": rows,
        "found_rows": len(found),
        "total_columns": columns,
        "first_row": first,
        "first_column": begin,
        "columns": [{"name": c.name[:500], "dtype": c.dtype[:200], "kind": c.kind} for c in shown],
        "label_names": [one[:500] for one in table.label_names],
        "labels": [list(row) for row in zip(*labels, strict=True)] if labels else [],
        "cells": [[values[at] for values in by_column] for at in range(len(positions))],
    }
