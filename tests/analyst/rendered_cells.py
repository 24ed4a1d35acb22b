"""Cells of readings, run in the process over small tables."""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from taskweaver.analyst.code.cell import as_code
from taskweaver.analyst.readings import Reading, Understood
from taskweaver.analyst.wording.answers import answer
from taskweaver.tables.files.profile import ColumnProfile, Kind, TableId, TableProfile

_KINDS: Mapping[str, Kind] = {"M": "time", "b": "flag", "i": "integer", "f": "number"}

_DAYS = (
    "2023-01-15 2023-02-03 2023-02-20 2023-07-01 2024-01-06 2024-01-07 2024-06-30 2024-09-09"
).split()
SALES = pd.DataFrame(
    {
        "region": ["North", "South", "North", "East", "South", None, "East", "North"],
        "product": ["tea", "tea", "coffee", "tea", "coffee", "tea", "cocoa", "cocoa"],
        "amount": [10.0, 20.0, 30.0, 40.0, None, 60.0, 5.0, 30.0],
        "count": [1, 2, 3, 4, 5, 6, 7, 8],
        "day": pd.to_datetime(_DAYS),
        "year": [2019, 2020, 2020, 2021, 2021, 2022, 2022, 2023],
        "shop": [1, 2, 1, 3, 2, 2, 3, 1],
    }
)
SHOPS = pd.DataFrame(
    {"shop": [1, 2, 3], "city": ["Ulm", "Bonn", "Ulm"], "year": [1990, 2000, 2010]}
)
TABLES = {"sales.csv": SALES, "shops.csv": SHOPS}


def profile(id: TableId, frame: pd.DataFrame) -> TableProfile:
    """Return the profile of a frame."""
    columns = []
    for name in frame:
        series = frame[name]
        kind = _KINDS.get(series.dtype.kind, "text")
        ends = ("", "") if kind == "text" else (str(series.min()), str(series.max()))
        texts = tuple(map(str, series.dropna().unique())) if series.nunique() < 50 else None
        missing = int(series.isna().sum())
        columns.append(
            ColumnProfile(str(name), kind, series.nunique(), missing, *ends, values=texts)
        )
    return TableProfile(id, len(frame), tuple(columns))


def profiles(frames: Mapping[str, pd.DataFrame] = TABLES) -> dict[TableId, TableProfile]:
    """Return the profiles of frames by their files."""
    return {TableId(file): profile(TableId(file), frame) for file, frame in frames.items()}


@dataclass(frozen=True)
class Run:
    """A cell that was run.

    Attributes:
        code: The cell.
        value: Value of its last expression.
        output: The text it printed.
        names: Names that it left behind.
        answer: The answer.
    """

    code: str
    value: Any
    output: str
    names: set[str]
    answer: str


def run(reading: Reading, frames: Mapping[str, pd.DataFrame] = TABLES) -> Run:
    """Render a reading as code and run it over frames."""
    code = as_code(reading, profiles(frames))
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    namespace: dict[str, Any] = {"read_table": lambda path: frames[path].copy()}
    output, value = io.StringIO(), None
    options = ("display.width", 300, "display.max_columns", 30)
    with contextlib.redirect_stdout(output), pd.option_context(*options):
        exec(compile(tree, "cell", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
        shown = "" if value is None else value if isinstance(value, str) else _text(value)
    names = set(namespace) - {"read_table", "__builtins__", "pd", "plt"}
    text = answer(Understood(reading), output.getvalue(), shown)
    return Run(code, value, output.getvalue(), names, text)


def _text(value: Any) -> str:
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    return repr(value)
