"""Printed form of profiles: a line for each fact, with texts of the file as JSON strings.

No text of a file begins or ends a line, so none can pass for a fact. The first line holds the
request, the last one the number of lines. `taskweaver.tables.files.profile_report` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from taskweaver.tables.files.profile import ColumnProfile, TableProfile

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
        lines += [head, *_facts(table, find, per_table)]
    return "\n".join([*lines, f"End of profile: {len(lines)} lines"])


def _facts(table: TableProfile, find: str, room: int) -> Iterator[str]:
    """Give the lines of a table: columns in order, then matches, within a number of characters."""
    columns = [column for column in table.columns if len(column.name) <= _LONGEST_NAME]
    plain = {column.name: _column(column) for column in columns}
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
    for column in sorted(columns, key=lambda column: len(_values(column))):
        values = _values(column)
        if column.name in kept and values and len(values) <= left:
            plain[column.name] += values
            left -= len(values)
    yield from (plain[column.name] for column in columns if column.name in kept)
    yield from matches


def _column(column: ColumnProfile) -> str:
    text = f"column {quoted(column.name)}: {column.kind}, {column.distinct} distinct"
    text += f", {column.missing} missing" if column.missing else ""
    if column.low or column.high:
        text += f", from {quoted(column.low)} to {quoted(column.high)}"
    if column.spellings:
        pairs = (f"{quoted(text)}: {quoted(value)}" for text, value in column.spellings.items())
        text += f", spellings {{{', '.join(pairs)}}}"
    return text


def _values(column: ColumnProfile) -> str:
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
