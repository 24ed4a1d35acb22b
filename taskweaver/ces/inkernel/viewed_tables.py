"""Tables of several libraries in one form: columns, values at positions, chosen rows."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_NUMPY_KINDS = {
    "b": "boolean",
    "i": "integer",
    "u": "integer",
    "f": "number",
    "M": "time",
    "m": "duration",
}
_ARROW_KINDS = {
    "bool": "boolean", "int": "integer", "uint": "integer", "float": "number", "double": "number",
    "halffloat": "number", "timestamp": "time", "date": "time", "time": "time",
    "duration": "duration", "string": "text", "large_string": "text", "dictionary": "category",
}  # fmt: skip
Filter = tuple[int, str, str]
"""Number of a column, a comparison, and a value as text."""
Key = tuple[int, bool]
"""Number of a column, and whether the largest values come first."""

_COMPARISONS = {
    "eq": "__eq__", "ne": "__ne__", "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__",
}  # fmt: skip
_TRUTHS = {"true": True, "false": False}


class ViewProblem(Exception):
    """A view that cannot be made, with a text for the client.

    Attributes:
        kind: ``missing``, ``invalid``, or ``slow``.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class ViewedColumn:
    """A column: name as text, the library's type, and the kind."""

    name: str
    dtype: str
    kind: str


def library_of(value: Any) -> str:
    """Return the library of a value that is a table, or "" for other values, without copying."""
    kinds = [(base.__module__.partition(".")[0], base.__name__) for base in type(value).__mro__]
    for library, kind in kinds:
        if library in {"pandas", "polars"} and kind in {"DataFrame", "Series"}:
            return library
    library, kind = kinds[0]
    is_arrow = library == "pyarrow" and kind in {"Table", "RecordBatch"}
    is_array = library == "numpy" and kind == "ndarray" and value.ndim in {1, 2}
    return library if is_arrow or is_array else ""


def table_of(value: Any) -> ViewedTable:
    """Return a value as a table.

    Raises:
        ViewProblem: If it is none.
    """
    match library_of(value):
        case "pandas":
            if value.ndim == 1:
                value = value.to_frame("value" if value.name is None else value.name)
            return PandasTable(value)
        case "numpy":
            import pandas as pd

            return PandasTable(pd.DataFrame(value, copy=False))
        case "polars":
            return ArrowTable(_arrow_of(value if len(value.shape) == 2 else value.to_frame()))
        case "pyarrow":
            return ArrowTable(value)
    raise ViewProblem("invalid", f"A {type(value).__name__} is no table.")


def _arrow_of(frame: Any) -> Any:
    """Return a frame of polars as a table of pyarrow, without a copy but for objects, as texts."""
    polars, shown = sys.modules["polars"], frame.clone()
    for number, dtype in enumerate(frame.dtypes):
        if dtype == polars.Object:  # pyarrow would have their addresses
            column = frame.to_series(number)
            texts = [None if one is None else str(one) for one in column]
            shown.replace_column(number, polars.Series(column.name, texts, dtype=polars.String))
    try:
        return shown.to_arrow()
    except ImportError:
        raise ViewProblem(
            "invalid", "Frames of polars are shown by pyarrow, which is not installed."
        ) from None


class PandasTable:
    """A frame of pandas.

    Attributes:
        is_nan_missing: Whether a float that is no number is a missing value in it.
        label_names: Names of the labels of rows, as text.
    """

    is_nan_missing = True

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        is_plain = type(frame.index).__name__ == "RangeIndex" and frame.index.name is None
        names = [] if is_plain else frame.index.names
        self.label_names = ["" if name is None else str(name) for name in names]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        rows, columns = self._frame.shape
        return int(rows), int(columns)

    def column(self, number: int) -> ViewedColumn:
        """Return a column by number."""
        dtype = self._frame.dtypes.iloc[number]
        kind = _NUMPY_KINDS.get(getattr(dtype, "kind", ""), "object")
        name = str(dtype)
        if name == "category":
            kind = "category"
        elif name.startswith(("string", "str")):
            kind = "text"
        elif name.startswith(("period", "interval", "Sparse")):
            kind = "object"
        return ViewedColumn(str(self._frame.columns[number]), name, kind)

    def series(self, number: int) -> Any:
        """Return a column as a pandas series with the positions of rows as the index."""
        return self._frame.iloc[:, number].reset_index(drop=True)

    def values(self, number: int, positions: Any) -> list[Any]:
        """Return the values of a column at positions."""
        return list(self._frame.iloc[:, number].iloc[positions].tolist())

    def labels(self, positions: Any) -> list[list[Any]]:
        """Return the labels of the rows at positions, a list for each level."""
        taken = self._frame.index.take(positions)
        return [taken.get_level_values(level).tolist() for level in range(len(self.label_names))]


class ArrowTable:
    """A table of pyarrow, or a frame of polars as one."""

    is_nan_missing = False

    def __init__(self, table: Any) -> None:
        self._table = table
        self.label_names: list[str] = []

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return int(self._table.num_rows), int(self._table.num_columns)

    def column(self, number: int) -> ViewedColumn:
        """Return a column by number."""
        field = self._table.schema.field(number)
        kind = re.match(r"[a-z_]*", dtype := str(field.type))
        return ViewedColumn(field.name, dtype, _ARROW_KINDS.get(kind[0] if kind else "", "object"))

    def series(self, number: int) -> Any:
        """Return a column as a pandas series with the positions of rows as the index."""
        return self._table.column(number).to_pandas()

    def values(self, number: int, positions: Any) -> list[Any]:
        """Return the values of a column at positions."""
        return list(self._table.column(number).take(positions).to_pylist())

    def labels(self, positions: Any) -> list[list[Any]]:  # noqa: ARG002
        """Return nothing: rows have no labels."""
        return []


ViewedTable = PandasTable | ArrowTable


def select(table: ViewedTable, filters: Sequence[Filter], order: Sequence[Key]) -> Any:
    """Return the positions of the rows that pass all filters, in a stable order.

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
