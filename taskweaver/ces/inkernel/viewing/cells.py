"""Values of tables as JSON: plain where JSON holds them exactly, else a type with a text."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Any

from taskweaver.ces.inkernel.cell.bounded import bounded_repr

MOST_CHARS = 500
"""Most characters of a value; of a longer text its beginning and its length are given."""

_EXACT = 1 << 53
_MISSING = {"NaTType", "NAType"}
_MOST_BITS = 10_000
_TIMES = (datetime.datetime, datetime.date, datetime.time)


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
    found = _plain(getattr(value, "item", None), value)
    form = _PLAIN.get(type(found))
    if form is not None:
        return form(found, is_nan_missing)
    if isinstance(found, _TIMES):
        return _of_kind("time", _said(found.isoformat), kind)
    if isinstance(found, datetime.timedelta):
        return _of_kind("duration", _said(lambda: str(found)), kind)
    name = type(found).__name__
    return _tagged(name[:MOST_CHARS], _said(lambda: _other(found)))


def _plain(item: Any, value: Any) -> Any:
    """Return the plain value of one of NumPy."""
    is_numpy = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    if not is_numpy or type(value).__name__ in {"datetime64", "timedelta64"}:
        return value
    return item() if callable(item) else value


def _integer(value: int) -> Any:
    return value if abs(value) <= _EXACT else _tagged("integer", _digits(value))


def _number(value: float, is_nan_missing: bool) -> Any:  # noqa: FBT001 - one of `_PLAIN`
    if math.isfinite(value):
        return value
    return None if math.isnan(value) and is_nan_missing else _tagged("number", repr(value))


def _digits(value: int) -> str:
    if value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length():,} bits"
    text = hex(value) if value.bit_length() > _MOST_BITS // 4 else str(value)
    return text[:MOST_CHARS]


def _text(value: str) -> Any:
    if len(value) <= MOST_CHARS:
        return value
    return {"type": "text", "text": value[:MOST_CHARS], "length": len(value)}


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


_PLAIN: dict[type, Callable[[Any, bool], Any]] = {
    bool: lambda value, _: value,
    int: lambda value, _: _integer(value),
    float: _number,
    str: lambda value, _: _text(value),
}
"""Forms of plain values: functions of a value, and whether a float that is no number is missing."""
