"""First impression of a file's tables: kinds of columns, first rows, number of rows.

Files are read as `read_table` reads them; columns are decided on by as many rows as are looked at
in passing, and the rows that are shown hold the values as they are written in the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from taskweaver.tables.deciding import counted, decide, is_of_texts
from taskweaver.tables.errors import TableError
from taskweaver.tables.evidence.numerals import is_marker, number_form
from taskweaver.tables.files.profile import ColumnProfile
from taskweaver.tables.plans.plan import Drop, Tidy, ToNumber
from taskweaver.tables.plans.steps import Frame
from taskweaver.tables.profiles.profiling import profiled
from taskweaver.tables.readers.databases import first_rows
from taskweaver.tables.readers.raw import Raw
from taskweaver.tables.reading import kind_of as kind_of_file
from taskweaver.tables.reading import parts_of, undecided

_SHOWN_ROWS, _HEAD_ROWS, _MOST_PARTS, _MOST_COLUMNS = 3, 200, 20, 200
_HEAD_CELLS = 100_000
_MOST_VALUES, _VALUES_CHARS = 8, 80
_CELL_CHARS = 200
_SEPARATORS = "thousands separators"
Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Impression:
    """First impression of a table.

    Attributes:
        part: Sheet or table; empty for the only one.
        columns: Names and kinds of its columns; after a comma, facts on the values.
        first: The first rows, each value as text.
    """

    part: str
    rows: int
    columns: tuple[tuple[str, str], ...]
    first: Rows


def impressions(path: Path, *, is_whole: bool = True) -> list[Impression]:
    """Return the first impression of each table of a file; tables that cannot be read are left out.

    Args:
        path: The file.
        is_whole: Whether it is the whole file, so that missing values can be counted.

    Raises:
        TableError: If no table of it can be read.
    """
    kind = kind_of_file(path)
    found: list[Impression] = []
    problems: list[TableError] = []
    for name in parts_of(path)[:_MOST_PARTS]:
        try:
            found.append(
                _of_database(path, name)
                if kind == "sqlite"
                else _of_part(path, name, is_whole=is_whole)
            )
        except TableError as error:
            problems.append(error)
    if problems and not found:
        raise problems[0]
    return found


def _of_database(path: Path, name: str) -> Impression:
    head, rows = first_rows(path, name, _HEAD_ROWS)
    first = _texts(head)
    decide(head)
    is_whole = len(head) == rows
    notes = _missing(head, {}, is_whole=is_whole)
    return Impression(name, rows, _columns(head, notes, is_whole=is_whole), first)


def _of_part(path: Path, part: str, *, is_whole: bool) -> Impression:
    raw = undecided(path, str(path), part)
    first = _written(raw) if raw.first else _texts(raw.frame)
    shown = raw.frame.iloc[:, :_MOST_COLUMNS]
    head = shown.iloc[: max(_HEAD_ROWS, _HEAD_CELLS // max(len(shown.columns), 1))].copy()
    written = head.copy()
    steps = decide(head, likely_decimal=raw.decimal, kept=raw.texts).steps
    numbers = [step.column for step in steps if isinstance(step, ToNumber)]
    notes = {
        name: _SEPARATORS
        for name in numbers
        if number_form(counted(written[name].dropna()), raw.decimal).thousands
    }
    converted = {step.column for step in steps if not isinstance(step, Tidy | Drop)}
    missing = _missing(shown, converted, is_whole=is_whole)
    lost = {str(raw.frame.columns[0]): f"without {' and '.join(raw.lost)}"} if raw.lost else {}
    both = {
        name: ", ".join(of[name] for of in (notes, missing, lost) if name in of) for name in shown
    }
    columns = _columns(head, both, is_whole=is_whole and len(head) == len(shown))
    return Impression(part, len(raw.frame), columns, first)


def _missing(frame: Frame, converted: Collection[str], *, is_whole: bool) -> dict[str, str]:
    """Return how many values of columns are missing, in words, of those that lack any.

    Args:
        frame: The rows.
        converted: Columns in which texts like ``n/a`` are missing values.
        is_whole: Whether these are all rows.
    """
    found = {}
    for name in frame.columns:
        column = frame[name]
        count = int(column.isna().sum())
        if is_of_texts(column):
            texts = counted(column.dropna())
            is_converted = name in converted
            count += sum(
                n for text, n in texts if not text.strip() or (is_converted and is_marker(text))
            )
        if count:
            found[name] = f"{count} missing" if is_whole else "some missing"
    return found


def _columns(
    head: Frame, notes: Mapping[str, str], *, is_whole: bool
) -> tuple[tuple[str, str], ...]:
    """Return names and kinds of columns, with the facts on their values.

    Ranges, and all values of texts that have few, are facts on a whole table; of the beginning of
    one there are examples of texts.
    """
    found = []
    for column in profiled(head.iloc[:, :_MOST_COLUMNS], "", "", "").columns:
        facts = [column.kind, _values(column, is_whole), notes.get(column.name)]
        for text, value in islice(column.spellings.items(), 1):
            facts.append(f"spellings of one value: {text!r} is {value!r}")
        found.append((column.name, ", ".join(filter(None, facts))))
    return tuple(found)


def _values(column: ColumnProfile, is_whole: bool) -> str:  # noqa: FBT001 - a fact on the column
    """Return the range or the values of a column; empty where they are unknown or too many."""
    if column.kind == "text":
        few = column.values if column.values and len(column.values) <= _MOST_VALUES else ()
        text = "|".join(few)
        prefix = "" if is_whole else "such as "
        return prefix + text if 0 < len(text) <= _VALUES_CHARS else ""
    return f"{column.low} to {column.high}" if is_whole and column.low != column.high else ""


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
