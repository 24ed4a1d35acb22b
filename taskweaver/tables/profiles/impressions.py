"""First impression of a file's tables: kinds of columns, first rows, number of rows.

Files are read as `read_table` reads them; columns are decided on by their first rows alone, and
the rows that are shown hold the values as they are written in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.tables.deciding import decide
from taskweaver.tables.errors import TableError
from taskweaver.tables.plans.steps import Frame
from taskweaver.tables.profiles.profiling import kind_of
from taskweaver.tables.readers.databases import first_rows, table_names
from taskweaver.tables.readers.raw import Raw
from taskweaver.tables.readers.workbooks import sheet_names
from taskweaver.tables.reading import kind_of as kind_of_file
from taskweaver.tables.reading import undecided

_SHOWN_ROWS, _HEAD_ROWS, _MOST_PARTS, _MOST_COLUMNS = 3, 200, 20, 200
_CELL_CHARS = 200
Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Impression:
    """First impression of a table.

    Attributes:
        part: Sheet or table; empty for the only one.
        columns: Names and kinds of its columns.
        first: The first rows, each value as text.
    """

    part: str
    rows: int
    columns: tuple[tuple[str, str], ...]
    first: Rows


def impressions(path: Path) -> list[Impression]:
    """Return the first impression of each table of a file; tables that cannot be read are left out.

    Raises:
        TableError: If no table of it can be read.
    """
    kind = kind_of_file(path)
    if kind == "sqlite":
        names = table_names(path)
    else:
        names = sheet_names(path) if kind == "excel" else [""]
    found: list[Impression] = []
    problems: list[TableError] = []
    for name in names[:_MOST_PARTS]:
        try:
            found.append(_of_database(path, name) if kind == "sqlite" else _of_part(path, name))
        except TableError as error:
            problems.append(error)
    if problems and not found:
        raise problems[0]
    return found


def _of_database(path: Path, name: str) -> Impression:
    head, rows = first_rows(path, name, _HEAD_ROWS)
    first = _texts(head)
    decide(head)
    return Impression(name, rows, _kinds(head), first)


def _of_part(path: Path, part: str) -> Impression:
    raw, _ = undecided(path, str(path), part)
    first = _written(raw) if raw.plan.reader == "csv" else _texts(raw.frame)
    head = raw.frame.iloc[:_HEAD_ROWS, :_MOST_COLUMNS].copy()
    decide(head, likely_decimal=raw.decimal, kept=raw.texts)
    return Impression(part, len(raw.frame), _kinds(head), first)


def _kinds(head: Frame) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), kind_of(head[name])) for name in head.columns[:_MOST_COLUMNS])


def _written(raw: Raw) -> Rows:
    """Return the first rows as the file holds them; rows without all values are filled up."""
    rows, columns = raw.frame.shape
    width = min(columns, _MOST_COLUMNS)
    filled = [(*row, *[""] * width)[:width] for row in raw.first[: min(rows, _SHOWN_ROWS)]]
    return tuple(tuple(map(_cell, row)) for row in filled)


def _texts(frame: Frame) -> Rows:
    """Return the first rows as texts; empty ones for missing values."""
    shown = frame.iloc[:_SHOWN_ROWS, :_MOST_COLUMNS]
    return tuple(tuple(map(_cell, row)) for row in shown.itertuples(index=False, name=None))


def _cell(value: Any) -> str:
    text = str(value)[:_CELL_CHARS]
    return "" if text in {"nan", "None", "NaT", "<NA>"} else text
