"""Tables that a kernel reported, as pandas tables of this process.

Code can forge everything that its kernel sends. A table is read as plain data, each part of it
checked: no object of the kernel is loaded here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from taskweaver.ces.common import CellTable

T = TypeVar("T")

_DTYPE = re.compile(
    r"u?int\d{1,2}|float\d{1,2}|U?Int\d{1,2}|Float\d{1,2}|bool|boolean|str|string|object"
    r"|datetime64\[[A-Za-z0-9_+\-/:, ]{1,60}\]|timedelta64\[\w{1,3}\]|period\[[\w-]{1,10}\]"
)
"""Types of columns that are made again; a column of another one has the type pandas infers."""


@dataclass(frozen=True, slots=True)
class ReadTables:
    """Tables that were read.

    Attributes:
        frames: Id of the cell and data frame of each.
        notes: A sentence for each that lacks rows.
    """

    frames: tuple[tuple[str, Any], ...]
    notes: tuple[str, ...]


def read_tables(reported: Iterable[CellTable]) -> ReadTables:
    """Return tables as data frames; texts in another form are left out.

    Args:
        reported: The tables of some cells.
    """
    frames: list[tuple[str, Any]] = []
    notes = []
    for table in reported:
        try:
            claim = json.loads(table.text)
            frame = _frame(claim)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            continue
        frames.append((table.exec_id, frame))
        rows = claim.get("rows")
        if isinstance(rows, int) and rows > len(frame):
            notes.append(f"Table {len(frames)} has the first {len(frame):,} of {rows:,} rows.")
    return ReadTables(tuple(frames), tuple(notes))


def _frame(claim: Any) -> Any:
    import pandas as pd

    columns = _axis(_as(dict, claim)["columns"])
    data = [_column(item) for item in _as(list, claim["data"])]
    if len(data) != len(columns) or len({len(column) for column in data}) > 1:
        raise ValueError("columns of different lengths")
    frame = pd.DataFrame(dict(enumerate(data)))
    if claim["index"] is not None:
        frame.index = _axis(claim["index"])
    frame.columns = columns
    return frame


def _axis(claim: Any) -> Any:
    import pandas as pd

    names = [_scalar(name) for name in _as(list, _as(dict, claim)["names"])]
    levels = [_column(item) for item in _as(list, claim["levels"])]
    if not levels or len(levels) != len(names) or len({len(level) for level in levels}) > 1:
        raise ValueError("levels of different lengths")
    if len(levels) == 1:
        return pd.Index(levels[0], name=names[0])
    return pd.MultiIndex.from_arrays(levels, names=names)


def _column(claim: Any) -> Any:
    import pandas as pd

    values = [_scalar(value) for value in _as(list, _as(dict, claim)["values"])]
    dtype = claim["dtype"]
    if "categories" in claim:
        categories = [_scalar(value) for value in _as(list, claim["categories"])]
        return pd.Series(pd.Categorical(values, categories, ordered=claim["is_ordered"] is True))
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        return pd.Series(values)
    try:
        return _typed(values, dtype)
    except (ValueError, TypeError, OverflowError):
        return pd.Series(values)


def _typed(values: Sequence[Any], dtype: Any) -> Any:
    import pandas as pd

    if dtype.startswith("datetime64"):
        zone = dtype.partition(", ")[2].rstrip("]")
        times = pd.to_datetime(pd.Series(values, dtype="object"), format="ISO8601", utc=bool(zone))
        return (times.dt.tz_convert(zone) if zone else times).astype(dtype)
    return pd.Series(values, dtype="object").astype(dtype)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"{type(value).__name__} is no value of a cell")


def _as(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} is no {kind.__name__}")
    return value
