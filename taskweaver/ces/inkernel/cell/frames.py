"""The value of a cell as a table in plain data, for programs that ask for it.

The form: ``rows`` of the whole table, ``index`` and ``columns`` as axes, ``data`` as a list of
columns. An axis has ``names`` and ``levels``; a level, as a column, has its ``dtype`` and its
``values``. A plain index from 0 is null. Numbers are written with all their digits; a value that
is no number, text, truth value or null is written as its text.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from taskweaver.ces.inkernel.timelimit import TooSlow, time_limit
from taskweaver.utils.text import shorten

MAX_CELLS = 200_000
"""Values of a table that are handed over; the rest of its rows is left out."""
_MAX_COLUMNS = 2_000
_TEXT_CHARS = 10_000
_ENCODE_S = 5.0
_TRIES = 6


def table_text(value: Any, limit_chars: int) -> str:
    """Return a pandas table as JSON; empty for any other value.

    Rows are left out at the end of a table that has too many values or too much text.

    Args:
        value: The value of a cell.
        limit_chars: Longest text.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, pandas.DataFrame | pandas.Series):
        return ""
    try:
        with time_limit(_ENCODE_S):
            return _bounded(_frame(value, pandas), limit_chars)
    except (TooSlow, Exception):  # noqa: BLE001 - a table may hold any object; its text is reported
        return ""


def _frame(value: Any, pandas: Any) -> Any:
    if isinstance(value, pandas.Series):
        return value.to_frame("value" if value.name is None else value.name)
    return value


def _bounded(frame: Any, limit_chars: int) -> str:
    frame = frame.iloc[:, :_MAX_COLUMNS]
    rows = min(len(frame), MAX_CELLS // max(1, frame.shape[1]))
    for _ in range(_TRIES):
        text = json.dumps(_encoded(frame.iloc[:rows], len(frame)), separators=(",", ":"))
        if len(text) <= limit_chars:
            return text
        rows = rows * limit_chars // len(text) * 3 // 4
    return ""


def _encoded(part: Any, rows: int) -> dict[str, Any]:
    is_plain = type(part.index).__name__ == "RangeIndex" and part.index.name is None
    is_plain = is_plain and (part.index.start, part.index.step) == (0, 1)
    return {
        "rows": rows,
        "index": None if is_plain else _axis(part.index),
        "columns": _axis(part.columns),
        "data": [_column(part.iloc[:, place]) for place in range(part.shape[1])],
    }


def _axis(index: Any) -> dict[str, Any]:
    levels = [_column(index.get_level_values(place)) for place in range(index.nlevels)]
    return {"names": [_plain(name) for name in index.names], "levels": levels}


def _column(values: Any) -> dict[str, Any]:
    categories = getattr(values.dtype, "categories", None)
    column: dict[str, Any] = {
        "dtype": str(values.dtype),
        "values": [_plain(value) for value in values.tolist()],
    }
    if categories is not None and str(values.dtype) == "category":
        column["categories"] = [_plain(value) for value in categories.tolist()]
        column["is_ordered"] = bool(values.dtype.ordered)
    return column


def _plain(value: Any) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is int:
        return value
    if kind is float:
        return value if math.isfinite(value) else repr(value) if math.isinf(value) else None
    if kind is str:
        return shorten(value, _TEXT_CHARS)
    if kind.__name__ in {"NaTType", "NAType"}:
        return None
    return shorten(str(value), _TEXT_CHARS)
