"""The report of a cell: everything about the cell but the streams, as JSON.

A program may ask for the value of a cell as a table in plain data: ``rows`` of the whole table,
``index`` and ``columns`` as axes, ``data`` as a list of columns. An axis has ``names`` and
``levels``; a level, as a column, has its ``dtype`` and its ``values``. A plain index from 0 is
null. Numbers are written with all their digits; a value that is no number, text, truth value or
null is written as its text.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from taskweaver.ces.inkernel.cell.current import ARTIFACTS
from taskweaver.ces.inkernel.cell.display import MAX_VALUE_CHARS, save_rich, text_of
from taskweaver.ces.inkernel.cell.output import BUDGET
from taskweaver.ces.inkernel.cell.values import visible_variables
from taskweaver.ces.inkernel.namespace import configure_libraries, table_reads
from taskweaver.ces.inkernel.timelimit import TooSlow, time_limit
from taskweaver.plugin.register import MODULE_PREFIX
from taskweaver.utils.text import shorten

PlainData = dict[str, Any]
MAX_CELLS = 200_000
"""Values of a table that are handed over; the rest of its rows is left out."""
_MAX_COLUMNS = 2_000
_TEXT_CHARS = 10_000
_ENCODE_S = 5.0
_TRIES = 6
RENDER_TIME_S = 2.0
_TABLES = {"pandas", "numpy", "builtins"}


def table_text(value: Any, limit_chars: int) -> str:
    """Return a pandas table as JSON, or "" for any other value.

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
            if isinstance(value, pandas.Series):
                value = value.to_frame("value" if value.name is None else value.name)
            return _bounded_table(value, limit_chars)
    except (TooSlow, Exception):  # noqa: BLE001 - a table may hold any object; its text is reported
        return ""


def _bounded_table(frame: Any, limit_chars: int) -> str:
    frame = frame.iloc[:, :_MAX_COLUMNS]
    rows = min(len(frame), MAX_CELLS // max(1, frame.shape[1]))
    for _ in range(_TRIES):
        text = json.dumps(_encoded_table(frame.iloc[:rows], len(frame)), separators=(",", ":"))
        if len(text) <= limit_chars:
            return text
        rows = rows * limit_chars // len(text) * 3 // 4
    return ""


def _encoded_table(part: Any, rows: int) -> PlainData:
    is_plain = type(part.index).__name__ == "RangeIndex" and part.index.name is None
    is_plain = is_plain and (part.index.start, part.index.step) == (0, 1)
    return {
        "rows": rows,
        "index": None if is_plain else _axis(part.index),
        "columns": _axis(part.columns),
        "data": [_column(part.iloc[:, place]) for place in range(part.shape[1])],
    }


def _axis(index: Any) -> PlainData:
    levels = [_column(index.get_level_values(place)) for place in range(index.nlevels)]
    return {"names": [_plain_value(name) for name in index.names], "levels": levels}


def _column(values: Any) -> PlainData:
    categories = getattr(values.dtype, "categories", None)
    column: PlainData = {
        "dtype": str(values.dtype),
        "values": [_plain_value(value) for value in values.tolist()],
    }
    if categories is not None and str(values.dtype) == "category":
        column["categories"] = [_plain_value(value) for value in categories.tolist()]
        column["is_ordered"] = bool(values.dtype.ordered)
    return column


def _plain_value(value: Any) -> Any:
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


def make_report(
    shell: Any, value: Any, hidden: frozenset[str], session: Any, table_chars: int
) -> PlainData:
    """Describe the cell that just ran.

    Args:
        shell: The shell that ran it.
        value: Its value.
        hidden: Names that are not the user's.
        session: Records of its plugins, a `PluginSession`.
        table_chars: Length of the table that is wanted, 0 for none.
    """
    configure_libraries()
    take_figures(value)
    variables: list[tuple[str, str]] = []
    output: Any = ""
    try:
        with time_limit(RENDER_TIME_S):
            output = _value(shell, value)
            variables.extend(visible_variables(shell.user_ns, hidden))
    except (TooSlow, SystemExit, KeyboardInterrupt):
        output = output or f"<{type(value).__name__}{_origin(value)}; showing it took too long>"
    return {
        "output": output,
        "variables": variables,
        "artifacts": ARTIFACTS.report(),
        "log": session.lines,
        "calls": session.calls.rows,
        "tables": table_reads(),
        "table": table_text(value, table_chars) if table_chars else "",
        "dropped_chars": BUDGET.dropped_chars,
    }


def to_json(report: PlainData) -> str:
    """Return a report as JSON in pure ASCII, without lone surrogates."""
    text = json.dumps(report, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace").decode()


def take_figures(value: Any = None) -> None:
    """Save, or show to another client, the figures of a cell, and that of its value if it has one.

    Axes, and grids of axes, have a figure. If one fails, the reason is printed.
    """
    if "matplotlib.figure" in sys.modules:
        from taskweaver.ces.inkernel.cell.figures import collect_figures, show_figure

        try:
            collect_figures()
            if type(value).__module__.startswith(("matplotlib.", "seaborn.")):
                figure = getattr(value, "figure", None)
                if figure is not None:
                    show_figure(figure)
        except Exception as error:  # noqa: BLE001 - drawing runs the user's artists; told below
            sys.stderr.write(f"A figure could not be saved: {type(error).__name__}: {error}\n")
            sys.stderr.flush()


def _value(shell: Any, value: Any) -> Any:
    if value is None or type(value).__module__.startswith("matplotlib"):
        return ""
    try:
        return _rendered(shell, value)
    except Exception as error:  # noqa: BLE001 - showing a value runs the user's code
        what = f"{type(value).__name__}{_origin(value)}"
        return f"<{what}, cannot be shown: {type(error).__name__}: {error}>"


def _origin(value: Any) -> str:
    """Return which plugin defines the type of a value, if one does."""
    name = type(value).__module__
    if not name.startswith(MODULE_PREFIX) or name not in sys.modules:
        return ""
    return f" of plugin {name.removeprefix(MODULE_PREFIX)} ({sys.modules[name].__file__})"


def _rendered(shell: Any, value: Any) -> Any:
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        value = value.item()
    if _is_plain(value):
        return value
    kind = type(value)
    is_table = kind.__module__.partition(".")[0] in _TABLES and kind.__name__ != "Styler"
    data, _ = shell.display_formatter.format(value, include={"text/plain"} if is_table else None)
    if "text/plain" not in data:  # it has displayed itself, or its text could not be made
        return "" if hasattr(value, "_ipython_display_") else repr(value)
    save_rich(data)
    return shorten(text_of(data), MAX_VALUE_CHARS)


def _is_plain(value: Any) -> bool:
    """Return whether the value survives a round trip through JSON unchanged."""
    if isinstance(value, dict):
        return all(type(key) is str for key in value) and _is_plain(list(value.values()))
    if isinstance(value, list):
        return len(value) <= 1000 and all(item is None or _is_plain(item) for item in value)
    kind = type(value)
    if kind is int:
        return bool(abs(value) < 1 << 63)
    if kind is float:
        return math.isfinite(value)
    return kind in {bool, str} and len(str(value)) <= MAX_VALUE_CHARS
