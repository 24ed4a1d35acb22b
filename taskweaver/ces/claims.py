"""Plain values in messages from a kernel, as the host accepts data: typed and bounded.

Code can forge everything that its kernel sends.
"""

from __future__ import annotations

import json
from typing import Any

from taskweaver.utils.text import shorten

_MAX_ROWS = 2_000
_MAX_TEXT_CHARS = 10_000


def texts(value: Any) -> list[str]:
    """Return the texts of a list, or an empty list for another value."""
    return [text(item) for item in items(value)]


def rows(value: Any, width: int) -> list[list[str]]:
    """Return the rows of a table, as text, that have the right width."""
    found = (row for row in items(value) if isinstance(row, list) and len(row) == width)
    return [[text(cell) for cell in row] for row in found]


def text(value: Any, limit_chars: int = _MAX_TEXT_CHARS) -> str:
    """Return a text or number as text that UTF-8 can hold, and "" for any other value."""
    if not isinstance(value, str | int | float):
        return ""
    return shorten(str(value).encode("utf-8", "replace").decode(), limit_chars)


def items(value: Any) -> list[Any]:
    """Return the items of a list, or an empty list for another value."""
    return value[:_MAX_ROWS] if isinstance(value, list) else []


def from_json(data: str | bytes) -> dict[str, Any]:
    """Return an object of JSON, or an empty dictionary for other data."""
    try:
        return mapping(json.loads(data))
    except (ValueError, RecursionError):
        return {}


def mapping(value: Any) -> dict[str, Any]:
    """Return an object of JSON, or an empty dictionary for another value."""
    return value if isinstance(value, dict) else {}
