"""Carry out a plan: read a file with pandas and convert its columns."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from taskweaver.tables.packing import opened, source_of
from taskweaver.tables.plans.plan import (
    Down,
    Drop,
    ReadPlan,
    Step,
    Tidy,
    ToNumber,
    ToTime,
    ToType,
)
from taskweaver.utils.sqlite_files import quoted_name

Frame = Any
"""A frame of pandas, which is not imported here."""
ACCOUNTING = (("\u2212", "-"), (r"^\((.*)\)$", r"-\1"))
"""Patterns of negative numbers, and replacements."""
SERIALS: Mapping[str, Mapping[str, str]] = {
    "YYYYMMDD": {"format": "%Y%m%d"},
    "seconds since 1970": {"unit": "s"},
    "milliseconds since 1970": {"unit": "ms"},
    "days since 1900": {"unit": "D", "origin": "1899-12-30"},
}
"""Numbers that stand for times, and the options of pandas that convert these."""


def read_source(plan: ReadPlan, **more: Any) -> Frame:
    """Return the frame of a plan before its steps; `more` are further options of its reader."""
    options: dict[str, Any] = {**plan.options, **more}
    readers: dict[str, Callable[..., Frame]] = {
        "csv": _read_csv,
        "excel": _read_excel,
        "parquet": _read_parquet,
        "sql": _read_sql,
        "json": _read_json,
        "jsonl": partial(_read_json, has_lines=True),
    }
    return readers[plan.reader](plan.path, **options)


def _read_csv(path: str, **options: Any) -> Frame:
    import pandas as pd

    formats = options.pop("date_format", {})
    if "header" in options and isinstance(options.get("dtype"), dict):
        options["dtype"] = numbered(options["dtype"])
    frame = pd.read_csv(path, **options)
    for column, form in formats.items():
        frame[column] = _times_or_texts(frame[column], form)
    if "header" not in options:
        return frame
    return frame.rename(columns=lambda number: f"column_{number + 1}")


def numbered(types: Mapping[str, str]) -> dict[int, str]:
    """Return types of columns that are named by their places, by the places."""
    return {int(name.rpartition("_")[2]) - 1: kind for name, kind in types.items()}


def _read_excel(path: str, **options: Any) -> Frame:
    import pandas as pd

    return pd.read_excel(source_of(path), **{"dtype": object, **options})


def _read_parquet(path: str, *, exact: bool = False) -> Frame:
    import pandas as pd

    if not exact:
        return pd.read_parquet(source_of(path))
    from pyarrow.parquet import read_table

    return read_table(source_of(path)).to_pandas(integer_object_nulls=True)


def _times_or_texts(series: Any, form: str) -> Any:
    """Return a column as times, or as it is if a value is none: as ``date_format`` of pandas.

    Each distinct text is converted once, which takes a fourth of the time for repeated dates.
    """
    import pandas as pd

    codes, texts = pd.factorize(series)
    try:
        times: Any = pd.to_datetime(texts, format=form)
    except (ValueError, TypeError):
        return series
    return pd.Series(times.take(codes, fill_value=pd.NaT), index=series.index, name=series.name)


def opened_database(path: Path) -> closing[sqlite3.Connection]:
    """Open a SQLite file for reading alone; the block closes it."""
    source = source_of(path)
    if isinstance(source, Path):
        return closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True))
    connection = sqlite3.connect(":memory:")
    connection.deserialize(source.getvalue())
    return closing(connection)


def _read_sql(path: str, table: str, *, exact: bool = False) -> Frame:
    import pandas as pd

    query = f"SELECT * FROM {quoted_name(table)}"
    with opened_database(Path(path)) as connection:
        if exact:
            return rows_of(connection.execute(query))
        return pd.read_sql_query(query, connection)


def rows_of(cursor: sqlite3.Cursor) -> Frame:
    """Return the rows of a query, with their values as objects."""
    import pandas as pd

    return pd.DataFrame(cursor, columns=[column[0] for column in cursor.description], dtype=object)


def _read_json(
    path: str,
    shape: str = "records",
    key: str = "",
    encoding: str = "utf-8",
    *,
    exact: bool = False,
    has_lines: bool = False,
) -> Frame:
    with opened(Path(path)) as file:
        data = json_of(file.read().decode(encoding), has_lines=has_lines)
    return frame_of(data[key] if key else data, shape, exact=exact)


def json_of(text: str, *, has_lines: bool) -> Any:
    """Return the value of a JSON text, or the list of the values of its lines."""
    text = text.replace("\r", "\n")
    if has_lines:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    return json.loads(text)


def is_flat(data: Any) -> bool:
    """Return whether no value of some records is a record."""
    return not any(isinstance(value, dict) for row in data for value in row.values())


def frame_of(data: Any, shape: str, *, exact: bool = False) -> Frame:
    """Return the frame of JSON data of a `Shape`; an exact one holds the values as objects."""
    import pandas as pd

    kind = object if exact else None
    match shape:
        case "nested":
            return pd.DataFrame([dict(_flattened(row)) for row in data], dtype=kind)
        case "records":
            flat = exact or is_flat(data)
            return pd.DataFrame(data, dtype=kind) if flat else pd.json_normalize(data)
        case "columns":
            return pd.DataFrame(data, dtype=kind).reset_index(drop=True)
        case "index":
            frame = pd.DataFrame.from_dict(data, orient="index", dtype=kind)
            return frame.reset_index(names="key")
        case _:
            return pd.DataFrame(data["data"], columns=data["columns"], dtype=kind)


def _flattened(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and values of a record in the order of ``json_normalize``: inner records last."""
    for name, value in row.items():
        if not isinstance(value, dict):
            yield before + name, value
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{before}{name}.")


def carry_out(frame: Frame, steps: tuple[Step, ...]) -> Frame:
    """Return a frame with all steps carried out; the given one may be changed."""
    for step in steps:
        if isinstance(step, Tidy):
            frame = tidied(frame, step)
        elif isinstance(step, Drop):
            frame = frame.drop(index=[*step.rows]).reset_index(drop=True)
        else:
            frame[step.column] = converted(frame[step.column], step)
    return frame


def tidied(frame: Frame, step: Tidy) -> Frame:
    """Return a frame with a change of the whole frame carried out."""
    match step.kind:
        case "names" | "strip":
            return frame.rename(columns=str if step.kind == "names" else str.strip)
        case "rows":
            return frame.dropna(how="all").reset_index(drop=True)
        case "columns":
            return frame.dropna(axis="columns", how="all")
        case "index" | "labels":
            return frame.reset_index(names="row" if step.kind == "index" else None)
        case "infer":
            return frame.infer_objects()


def converted(series: Any, step: Down | ToNumber | ToTime | ToType) -> Any:
    """Return a column with a step on it carried out."""
    import pandas as pd

    match step:
        case ToNumber():
            errors: Any = "coerce" if step.is_partial else "raise"
            backend: Any = {"dtype_backend": "numpy_nullable"} if step.is_whole else {}
            return pd.to_numeric(plain_numbers(series, step), errors=errors, **backend)
        case ToTime():
            errors = "coerce" if step.is_partial else "raise"
            if step.format == "YYYYMMDD":
                series = series.astype("Int64").astype(str)
            how: Any = SERIALS.get(step.format, {"format": step.format})
            times = pd.to_datetime(series, errors=errors, utc=step.is_utc, **how)
            return times.dt.tz_localize(None) if step.is_utc else times
        case ToType():
            return series.astype(step.type)
        case Down():
            return series.where(~series.index.isin(step.rows), series.ffill())


def removal_pattern(remove: tuple[str, ...]) -> str:
    """Return a regular expression that matches each of some texts."""
    return "|".join(r"\s" if text == " " else re.escape(text) for text in remove)


def plain_numbers(series: Any, step: ToNumber) -> Any:
    """Return a column as texts of plain numbers, without units and thousands separators."""
    texts = series.astype(str)
    if step.remove:
        texts = texts.str.replace(removal_pattern(step.remove), "", regex=True)
    if step.decimal != ".":
        texts = texts.str.replace(step.decimal, ".", regex=False)
    for pattern, replacement in ACCOUNTING if step.has_accounting else ():
        texts = texts.str.replace(pattern, replacement, regex=True)
    return texts
