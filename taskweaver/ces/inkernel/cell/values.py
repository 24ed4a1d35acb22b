"""Values as bounded text, and the user's variables, one line each.

The text of a large value is made from its beginning alone: ``repr`` of 450 MiB of bytes takes
seconds and four times their memory, for a line of 500 characters.
"""

from __future__ import annotations

import array
import collections
import io
import types
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from taskweaver.utils.text import shorten

SEQUENCES = (str, bytes, bytearray, array.array)
"""Types of long values without objects in them."""
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), dict: ("{", "}"),
    frozenset: ("frozenset({", "})"), collections.deque: ("deque([", "])"),
    collections.Counter: ("Counter({", "})"), collections.OrderedDict: ("OrderedDict({", "})"),
    collections.defaultdict: ("defaultdict({", "})"),
}  # fmt: skip
_NUMBERS = {int, float, complex, bool, type(None)}
_NUMBER_CHARS = 20
_LEAST_CHARS = 4
MAX_VARIABLES = 40
MAX_CHARS = 500
_MAX_COLUMNS = 60


def bounded_repr(value: Any, limit_chars: int, other: Callable[[Any], str] = repr) -> str:
    """Return the text of a value, or beginning and length of a large built-in value.

    `other` returns the text of an object that is not of a built-in type.
    """
    return shorten(_text(value, limit_chars, other), limit_chars)


def _text(value: Any, limit: int, other: Callable[[Any], str]) -> str:
    kind = type(value)
    if kind in SEQUENCES:
        return repr(value) if len(value) <= limit else f"{value[:limit]!r}... {len(value):,} in all"
    if kind not in _BRACKETS:
        return other(value)
    if _is_small(value, limit):
        return repr(value)
    if limit < _LEAST_CHARS:
        return "..."
    first, last = _BRACKETS[kind]
    parts, left = [], limit
    for part in _parts(value, limit // 2, other):
        parts.append(part)
        left -= len(part) + len(", ")
        if left <= 0:
            break
    if len(parts) < len(value):
        parts.append(f"... {len(value):,} in all")
    return f"{first}{', '.join(parts)}{',' if kind is tuple and len(value) == 1 else ''}{last}"


def _parts(value: Any, limit: int, other: Callable[[Any], str]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield f"{_text(key, limit, other)}: {_text(item, limit, other)}"
    else:
        for item in value:
            yield _text(item, limit, other)


def _is_small(value: Any, limit: int) -> bool:
    """Return whether a value is made of built-in values, with a short text."""
    waiting, size = [value], 0
    while waiting and size <= limit:
        one = waiting.pop()
        if type(one) in SEQUENCES:
            size += len(one)
        elif type(one) in _BRACKETS:
            size += 2 + len(one)
            waiting += islice(one, limit)
            if isinstance(one, Mapping):
                waiting += islice(one.values(), limit)
        elif type(one) in _NUMBERS:
            size += _NUMBER_CHARS
        else:
            return False
    return size <= limit


def visible_variables(
    namespace: Mapping[str, Any], hidden: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Yield name and rendering of the user's variables but open files, newest last."""
    for name, value in shown_variables(namespace, hidden)[-MAX_VARIABLES:]:
        yield name, describe(value)


def shown_variables(namespace: Mapping[str, Any], hidden: frozenset[str]) -> list[tuple[str, Any]]:
    """Return the user's variables but open files, newest last."""
    return [
        (name, value)
        for name, value in list(namespace.items())
        if not name.startswith("_")
        and name not in hidden
        and not isinstance(value, types.ModuleType | types.FunctionType | type | io.IOBase)
    ]


def describe(value: Any) -> str:
    """Return a value in a line."""
    try:
        if type(value) is str:
            return shorten(value, MAX_CHARS)
        return bounded_repr(value, MAX_CHARS, lambda one: _SPECIAL.get(_kind(one), repr)(one))
    except Exception as error:  # noqa: BLE001 - a repr is the user's code and may raise anything
        return f"<{_kind(value)}, cannot be shown: {type(error).__name__}>"


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _frame(frame: Any) -> str:
    columns = [f"{name}:{dtype}" for name, dtype in list(frame.dtypes.items())[:_MAX_COLUMNS]]
    more = "" if len(frame.columns) <= _MAX_COLUMNS else ", ..."
    return f"DataFrame {frame.shape[0]}x{frame.shape[1]}: {', '.join(columns)}{more}"


def _series(series: Any) -> str:
    return f"Series {series.name!r} of {len(series)} {series.dtype}"


def _array(array: Any) -> str:
    shown = repr(array) if array.size <= 20 else f"{array.flat[:5]!r}..."  # no copy of all
    return f"ndarray shape={array.shape} dtype={array.dtype} value={shown}"


_SPECIAL: dict[str, Callable[[Any], str]] = {
    "pandas.DataFrame": _frame,
    "pandas.core.frame.DataFrame": _frame,
    "pandas.Series": _series,
    "pandas.core.series.Series": _series,
    "numpy.ndarray": _array,
}
