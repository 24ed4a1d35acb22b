"""Carry out a plan: read a file with pandas and convert its columns."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from taskweaver.tables.plans.plan import (
    Down,
    Drop,
    Fill,
    ReadPlan,
    Step,
    Tidy,
    ToFlag,
    ToNumber,
    ToTime,
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
    import pandas as pd

    options: dict[str, Any] = {**plan.options, **more}
    readers: dict[str, Callable[..., Frame]] = {
        "csv": _read_csv,
        "excel": pd.read_excel,
        "parquet": pd.read_parquet,
        "sql": _read_sql,
        "json": _read_json,
        "jsonl": _read_jsonl,
    }
    if plan.reader == "excel":
        options["dtype"] = object
    return readers[plan.reader](plan.path, **options)


def _read_csv(path: str, **options: Any) -> Frame:
    import pandas as pd

    formats = options.pop("date_format", {})
    frame = pd.read_csv(path, **options)
    for column, form in formats.items():
        frame[column] = _times_or_texts(frame[column], form)
    if "header" not in options:
        return frame
    return frame.rename(columns=lambda number: f"column_{number + 1}")


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
    return closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True))


def _read_sql(path: str, table: str) -> Frame:
    import pandas as pd

    with opened_database(Path(path)) as connection:
        return pd.read_sql_query(f"SELECT * FROM {quoted_name(table)}", connection)


def _read_json(path: str, shape: str, key: str = "", encoding: str = "utf-8") -> Frame:
    data = json.loads(Path(path).read_text(encoding))
    return frame_of(data[key] if key else data, shape)


def _read_jsonl(path: str, encoding: str = "utf-8") -> Frame:
    lines = Path(path).read_text(encoding).split("\n")
    return frame_of([json.loads(line) for line in lines if line.strip()], "records")


def frame_of(data: Any, shape: str) -> Frame:
    """Return the frame of JSON data of a `Shape`."""
    import pandas as pd

    match shape:
        case "records":
            is_flat = not any(isinstance(value, dict) for row in data for value in row.values())
            return pd.DataFrame(data) if is_flat else pd.json_normalize(data)
        case "columns":
            return pd.DataFrame(data).reset_index(drop=True)
        case "index":
            return pd.DataFrame.from_dict(data, orient="index").reset_index(names="key")
        case _:
            return pd.DataFrame(data["data"], columns=data["columns"])


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
        case "index":
            return frame.reset_index(names="row")
        case "infer":
            return frame.infer_objects()


def converted(series: Any, step: Down | ToNumber | ToTime | ToFlag | Fill) -> Any:
    """Return a column with a step on it carried out."""
    import pandas as pd

    match step:
        case ToNumber():
            errors: Any = "coerce" if step.is_partial else "raise"
            return pd.to_numeric(_plain_numbers(series.astype(str), step), errors=errors)
        case ToTime():
            errors = "coerce" if step.is_partial else "raise"
            if step.format == "YYYYMMDD":
                series = series.astype("Int64").astype(str)
            how: Any = SERIALS.get(step.format, {"format": step.format})
            times = pd.to_datetime(series, errors=errors, utc=step.is_utc, **how)
            return times.dt.tz_localize(None) if step.is_utc else times
        case ToFlag():
            return series.astype("boolean")
        case Down():
            return series.where(~series.index.isin(step.rows), series.ffill())
        case Fill():
            return series.fillna(step.text)


def removal_pattern(remove: tuple[str, ...]) -> str:
    """Return a regular expression that matches each of some texts."""
    return "|".join(r"\s" if text == " " else re.escape(text) for text in remove)


def _plain_numbers(texts: Any, step: ToNumber) -> Any:
    if step.remove:
        texts = texts.str.replace(removal_pattern(step.remove), "", regex=True)
    if step.decimal != ".":
        texts = texts.str.replace(step.decimal, ".", regex=False)
    for pattern, replacement in ACCOUNTING if step.has_accounting else ():
        texts = texts.str.replace(pattern, replacement, regex=True)
    return texts
