"""Profiles of tables: kinds, ranges and values of columns, and first impressions of files."""

from __future__ import annotations

import datetime
import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from taskweaver.tables.deciding import counted, decide, is_of_texts
from taskweaver.tables.errors import TableError
from taskweaver.tables.evidence.numerals import is_marker, number_form
from taskweaver.tables.files.profile import ColumnProfile, Kind, TableId, TableProfile
from taskweaver.tables.plans.plan import Drop, Tidy, ToNumber
from taskweaver.tables.plans.steps import Frame
from taskweaver.tables.profiles.matching import ValueFinder
from taskweaver.tables.readers.databases import first_rows
from taskweaver.tables.readers.raw import Raw
from taskweaver.tables.reading import kind_of as kind_of_file
from taskweaver.tables.reading import parts_of, undecided
from taskweaver.utils.text import folded

MOST_CHARS = 7_500
"""Bound of the text; reports of cells show 8,000 characters of a value."""
MATCHES_ONLY = ", matches only"
_LONGEST_REQUEST = 2_000
_LONGEST_NAME = 300
_SHARE_OF_COLUMNS = 0.75


def quoted(text: str) -> str:
    """Return a text as a JSON string without line ends, invisible characters, and delimiters."""
    plain = json.dumps(text, ensure_ascii=False)[1:-1]
    shown = "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in plain)
    return f'"{shown}"'.replace("{{", "\\u007b{")


def profile_text(tables: Sequence[TableProfile], find: str, *, matches_only: bool = False) -> str:
    """Return the printed form of profiles, of at most `MOST_CHARS` characters."""
    if matches_only:
        tables = [replace(table, columns=()) for table in tables]
    request = find if len(find) <= _LONGEST_REQUEST else ""
    first = f"Profile of {len(tables)} tables, request {quoted(request)}"
    first += MATCHES_ONLY if matches_only else ""
    room = MOST_CHARS - len(first) - 60
    heads = [
        f"table {quoted(table.id.file)} part {quoted(table.id.part)}: {table.rows} rows"
        for table in tables
    ]
    room -= sum(len(head) + 1 for head in heads)
    per_table = room // max(len(tables), 1)
    lines = [first]
    for table, head in zip(tables, heads, strict=True):
        facts = list(_facts(table, find, per_table))
        hidden = len(table.columns) - sum(line.startswith("column ") for line in facts)
        lines += [head + f", {hidden} more columns" * bool(hidden), *facts]
    return "\n".join([*lines, f"End of profile: {len(lines)} lines"])


def _facts(table: TableProfile, find: str, room: int) -> Iterator[str]:
    """Give the lines of a table: columns in order, then matches, within a number of characters."""
    columns = [column for column in table.columns if len(column.name) <= _LONGEST_NAME]
    plain = {column.name: _column_line(column) for column in columns}
    asked = find.casefold()
    by_need = sorted(columns, key=lambda column: column.name.casefold() not in asked)
    kept, left = set(), int(room * _SHARE_OF_COLUMNS)
    for column in by_need:
        if len(plain[column.name]) + 1 <= left:
            kept.add(column.name)
            left -= len(plain[column.name]) + 1
    left += room - int(room * _SHARE_OF_COLUMNS)
    matches = []
    for line in _matches(table):
        if len(line) + 1 <= left:
            matches.append(line)
            left -= len(line) + 1
    for column in sorted(columns, key=lambda column: len(_values_line(column))):
        values = _values_line(column)
        if column.name in kept and values and len(values) <= left:
            plain[column.name] += values
            left -= len(values)
    yield from (plain[column.name] for column in columns if column.name in kept)
    yield from matches


def _column_line(column: ColumnProfile) -> str:
    text = f"column {quoted(column.name)}: {column.kind}, {column.distinct} distinct"
    text += f", {column.missing} missing" if column.missing else ""
    if column.low or column.high:
        text += f", from {quoted(column.low)} to {quoted(column.high)}"
    if column.spellings:
        pairs = (f"{quoted(text)}: {quoted(value)}" for text, value in column.spellings.items())
        text += f", spellings {{{', '.join(pairs)}}}"
    return text


def _values_line(column: ColumnProfile) -> str:
    if column.values is None:
        return ""
    return f", values [{', '.join(map(quoted, column.values))}]"


def _matches(table: TableProfile) -> Iterator[str]:
    """Give a line for each match, matches of several words first."""
    for words, found in sorted(table.matches.items(), key=lambda item: -len(item[0])):
        for match in found:
            how = "is" if match.is_exact else "is a form of"
            value, column = quoted(match.value), quoted(match.column)
            yield f"match {quoted(words)} {how} {value} in {column}"


MOST_VALUES = 30
_LONGEST_VALUE = 80
_MOST_DISTINCT, _SPELLINGS_CHARS = 20_000, 1_500
_MOST_BARS = 16


@dataclass(frozen=True, slots=True, repr=False)
class FileProfile:
    """Profiles of the tables of a file; prints as lines that a program reads back.

    Attributes:
        find: The request whose words were looked up.
        matches_only: Whether the columns are not printed.
    """

    tables: tuple[TableProfile, ...]
    find: str
    matches_only: bool = False

    def __repr__(self) -> str:
        return profile_text(self.tables, self.find, matches_only=self.matches_only)


def profiled(frame: Any, file: str, part: str, find: str) -> TableProfile:
    """Return the profile of a table; the words of a request are looked up in text columns."""
    finder = ValueFinder(find)
    columns = tuple(_column(str(name), frame[name], finder) for name in frame.columns)
    return TableProfile(TableId(file, part), len(frame), columns, finder.found)


def _column(name: str, series: Any, finder: ValueFinder) -> ColumnProfile:
    kind = kind_of(series)
    present = series.dropna()
    missing = len(series) - len(present)
    if kind in {"text", "flag"}:
        spellings = spellings_of(present)
        try:
            distinct = list(map(str, present.replace(spellings).unique().tolist()))
        except TypeError:  # lists and dictionaries
            distinct = [str(value) for value in present.astype(str).unique()]
        if kind == "text":
            finder.look(name, distinct)
        is_short = len(distinct) <= MOST_VALUES and all(len(v) <= _LONGEST_VALUE for v in distinct)
        values = tuple(sorted(distinct)) if is_short else None
        return ColumnProfile(name, kind, len(distinct), missing, "", "", values, spellings)
    low, high = (_text(present.min()), _text(present.max())) if len(present) else ("", "")
    if kind == "time" and low.endswith("T00:00:00") and high.endswith("T00:00:00"):
        low, high = low[:10], high[:10]
    if kind == "integer":
        low, high = low.removesuffix(".0"), high.removesuffix(".0")
    return ColumnProfile(name, kind, int(present.nunique()), missing, low, high)


def bars_of(series: Any, column: ColumnProfile) -> tuple[int, ...]:
    """Return the heights of a column's histogram; none of texts with many values."""
    if column.kind in {"text", "flag"}:
        is_grouped = column.values and column.distinct < len(series)
        counts = series.replace(column.spellings).value_counts() if is_grouped else []
        return tuple(counts)[:_MOST_BARS]
    with suppress(ValueError):  # nothing to cut: no value, or an infinite one
        return tuple(series.value_counts(bins=min(column.distinct, _MOST_BARS), sort=False))
    return ()


def spellings_of(present: Any) -> dict[str, str]:
    """Map spellings of values to the most frequent one, where case, blanks or accents differ.

    A column with more of them than a profile has room for is left as it is.
    """
    try:
        counts = present.value_counts()
    except TypeError:  # lists and dictionaries
        return {}
    groups: dict[str, list[str]] = {}
    if len(counts) <= _MOST_DISTINCT:
        for value, _ in sorted(counts.items(), key=lambda item: (-item[1], str(item[0]))):
            if isinstance(value, str) and value.strip():
                groups.setdefault(folded(value), []).append(value)
    is_key = 2 * len(counts) > len(present)
    found = {
        value: " ".join(group[0].split())
        for group in groups.values()
        if len(group) > 1 and _is_one(group, is_key=is_key)
        for value in group
        if value != " ".join(group[0].split())
    }
    return found if sum(map(len, [*found, *found.values()])) <= _SPELLINGS_CHARS else {}


def _is_one(spellings: Collection[str], *, is_key: bool) -> bool:
    """Return whether spellings are one value: in keys such as ``aB1`` and ``Ab1`` case has meaning.

    Of a column that repeats its values, one spelling may have capitals inside, as ``iPhone``.
    """
    plain = {" ".join(unicodedata.normalize("NFKC", text).split()) for text in spellings}
    odd = [
        text
        for text in plain
        if any(
            word not in {word.lower(), word.upper(), word.capitalize()}
            or (is_key and not word.isalpha())
            for word in re.findall(r"\w+", text)
        )
    ]
    return len(plain) == 1 or len(odd) <= (not is_key)


def kind_of(series: Any) -> Kind:
    """Return the kind of a column: number, integer, time, text or flag."""
    import pandas as pd

    types = pd.api.types
    if types.is_bool_dtype(series.dtype):
        return "flag"
    if types.is_datetime64_any_dtype(series.dtype):
        return "time"
    if types.is_integer_dtype(series.dtype):
        return "integer"
    if types.is_float_dtype(series.dtype):
        present = series.dropna()
        is_whole = len(present) < len(series) and len(present) and bool((present % 1 == 0).all())
        return "integer" if is_whole else "number"
    return "text"


def _text(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return str(value.item() if hasattr(value, "item") else value)


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
