"""The user's variables, one line each."""

from __future__ import annotations

import io
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from taskweaver.ces.inkernel.cell.bounded import bounded_repr
from taskweaver.utils.text import shorten

MAX_VARIABLES = 40
MAX_CHARS = 500
_MAX_COLUMNS = 60
_HIDDEN = frozenset({"In", "Out", "get_ipython", "exit", "quit", "open", "pd", "np", "plt"})


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
        and name not in _HIDDEN
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
