"""Tables of several libraries in one form: columns, and their values at positions."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

from taskweaver.ces.inkernel.viewing.problem import ViewProblem

_KINDS = {
    "b": "boolean",
    "i": "integer",
    "u": "integer",
    "f": "number",
    "M": "time",
    "m": "duration",
}
_ARROW = {
    "bool": "boolean", "int": "integer", "uint": "integer", "float": "number", "double": "number",
    "halffloat": "number", "timestamp": "time", "date": "time", "time": "time",
    "duration": "duration", "string": "text", "large_string": "text", "dictionary": "category",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ViewedColumn:
    """A column: its name as text, the library's type, and its kind."""

    name: str
    dtype: str
    kind: str


class ViewedTable(Protocol):
    """A table.

    Attributes:
        is_nan_missing: Whether a float that is no number is a missing value in it.
        label_names: Names of the labels of rows, as text.
    """

    is_nan_missing: bool
    label_names: list[str]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""

    def column(self, number: int) -> ViewedColumn:
        """Return a column by its number."""

    def series(self, number: int) -> Any:
        """Return a column as a pandas series with the positions of rows as its index."""

    def values(self, number: int, positions: Any) -> list[Any]:
        """Return the values of a column at positions."""

    def labels(self, positions: Any) -> list[list[Any]]:
        """Return the labels of the rows at positions, a list for each level."""


def table_of(value: Any) -> ViewedTable:
    """Return a value as a table.

    Raises:
        ViewProblem: If it is none.
    """
    kind, library = type(value).__name__, type(value).__module__.partition(".")[0]
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return PandasTable(value)
    if pandas is not None and isinstance(value, pandas.Series | pandas.Index):
        return PandasTable(value.to_frame("value" if value.name is None else value.name))
    if polars is not None and isinstance(value, polars.DataFrame | polars.Series):
        return ArrowTable(_arrow_of(value.to_frame() if kind == "Series" else value, polars))
    if library == "pyarrow" and kind in {"Table", "RecordBatch"}:
        return ArrowTable(value)
    if library == "numpy" and kind == "ndarray" and value.ndim in {1, 2}:
        import pandas as pd

        return PandasTable(pd.DataFrame(value, copy=False))
    raise ViewProblem("invalid", f"A {kind} is no table.")


def _arrow_of(frame: Any, polars: Any) -> Any:
    """Return a frame of polars as a table of pyarrow, without a copy but for objects, as texts."""
    shown = frame.clone()
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


def is_table(value: Any) -> bool:
    """Return whether a value is a table; nothing is copied."""
    library, kind = type(value).__module__.partition(".")[0], type(value).__name__
    if library == "numpy":
        return kind == "ndarray" and value.ndim in {1, 2}
    if library == "pyarrow":
        return kind in {"Table", "RecordBatch"}
    names = {base.__name__ for base in type(value).__mro__}
    libraries = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    return bool(names & {"DataFrame", "Series"}) and bool(libraries & {"pandas", "polars"})


class PandasTable:
    """A frame of pandas."""

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
        """Return a column by its number."""
        dtype = self._frame.dtypes.iloc[number]
        kind = _KINDS.get(getattr(dtype, "kind", ""), "object")
        name = str(dtype)
        if name == "category":
            kind = "category"
        elif name.startswith(("string", "str")):
            kind = "text"
        elif name.startswith(("period", "interval", "Sparse")):
            kind = "object"
        return ViewedColumn(str(self._frame.columns[number]), name, kind)

    def series(self, number: int) -> Any:
        """Return a column as a pandas series with the positions of rows as its index."""
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
        """Return a column by its number."""
        field = self._table.schema.field(number)
        return ViewedColumn(field.name, str(field.type), _arrow_kind(str(field.type)))

    def series(self, number: int) -> Any:
        """Return a column as a pandas series with the positions of rows as its index."""
        return self._table.column(number).to_pandas()

    def values(self, number: int, positions: Any) -> list[Any]:
        """Return the values of a column at positions."""
        return list(self._table.column(number).take(positions).to_pylist())

    def labels(self, positions: Any) -> list[list[Any]]:
        """Return nothing: rows have no labels."""
        del positions
        return []


def _arrow_kind(dtype: str) -> str:
    head = dtype.partition("(")[0].partition("[")[0].partition("<")[0].rstrip("0123456789")
    return _ARROW.get(head, "object")
