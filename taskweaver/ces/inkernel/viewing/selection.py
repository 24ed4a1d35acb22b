"""Rows of a table that pass filters, in an order: as positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taskweaver.ces.inkernel.viewing.problem import ViewProblem
from taskweaver.ces.inkernel.viewing.tables import ViewedTable

Filter = tuple[int, str, str]
"""Number of a column, a comparison, and a value as text."""
Key = tuple[int, bool]
"""Number of a column, and whether the largest values come first."""

_COMPARISONS = {
    "eq": "__eq__", "ne": "__ne__", "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__",
}  # fmt: skip
_TRUTHS = {"true": True, "false": False}


def select(table: ViewedTable, filters: Sequence[Filter], order: Sequence[Key]) -> Any:
    """Return the positions of the rows that pass all filters, in an order; equal ones as they were.

    Missing values come last, whichever way a column is sorted.

    Raises:
        ViewProblem: If there is no such column, or it cannot be compared or sorted.
    """
    import numpy as np

    rows, columns = table.shape
    for number in (*(one[0] for one in filters), *(one[0] for one in order)):
        if not 0 <= number < columns:
            raise ViewProblem("missing", f"There is no column {number}; the table has {columns}.")
    found = np.arange(rows)
    for number, comparison, value in filters:
        passed = _passed(table, number, comparison, value)
        found = found[passed[found]]
    for number, is_descending in reversed(order):
        series = table.series(number).iloc[found].reset_index(drop=True)
        try:
            ordered = series.sort_values(
                kind="stable", ascending=not is_descending, na_position="last"
            )
        except TypeError as error:
            name = table.column(number).name
            raise ViewProblem("invalid", f"{name!r:.100} cannot be sorted: {error}"[:300]) from None
        found = found[ordered.index.to_numpy()]
    return found


def _passed(table: ViewedTable, number: int, comparison: str, value: str) -> Any:
    import numpy as np

    column, series = table.column(number), table.series(number)
    try:
        mask = _mask(series, column.kind, comparison, value)
        return np.asarray(mask.fillna(False), dtype=bool)
    except (TypeError, ValueError, OverflowError) as error:
        text = f"{column.name!r:.100} cannot be compared with {value!r:.100}: {error}"
        raise ViewProblem("invalid", text[:400]) from None


def _mask(series: Any, kind: str, comparison: str, value: str) -> Any:
    if comparison in {"missing", "present"}:
        missing = series.isna()
        return missing if comparison == "missing" else ~missing
    if comparison == "contains":
        return series.astype("string").str.contains(value, case=False, regex=False, na=False)
    operation = _COMPARISONS.get(comparison)
    if operation is None:
        raise ViewProblem("invalid", f"There is no comparison {comparison!r:.50}.")
    if kind in {"object", "category"}:
        series = series.astype("string")
    return getattr(series, operation)(_constant(series, kind, value))


def _constant(series: Any, kind: str, value: str) -> Any:
    import pandas as pd

    if kind == "time":
        return _moment(series, pd.Timestamp(value))
    plain: dict[str, Any] = {
        "integer": _integer,
        "number": float,
        "boolean": _truth,
        "duration": pd.Timedelta,
    }
    return plain.get(kind, str)(value)


def _integer(value: str) -> float:
    try:
        return int(value)
    except ValueError:
        return float(value)


def _truth(value: str) -> bool:
    if value.lower() not in _TRUTHS:
        raise ValueError("it is true or false")
    return _TRUTHS[value.lower()]


def _moment(series: Any, moment: Any) -> Any:
    """Return a moment in the form that a column of times is compared with."""
    zone = getattr(series.dtype, "tz", None)
    if zone is not None and moment.tzinfo is None:
        return moment.tz_localize(zone)
    return moment if series.dtype.kind == "M" else moment.date()
