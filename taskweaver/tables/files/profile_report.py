"""Read profiles of tables back from the text that `profile_tables` prints.

Texts of the file are JSON strings inside of lines, so a value with line ends or keywords stays a
value. Anything that is not exactly the printed form gives no profiles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from taskweaver.tables.files.profile import ColumnProfile, Kind, TableId, TableProfile, ValueMatch

_TEXT = r'"(?:[^"\\\x00-\x1f]|\\.)*"'
_NUMBER = r"\d{1,15}"
_FIRST = re.compile(
    rf"Profile of (?P<tables>\d{{1,4}}) tables, request (?P<request>{_TEXT})"
    r"(?P<brief>, matches only)?"
)
_LAST = re.compile(r"End of profile: (?P<lines>\d{1,6}) lines")
_TABLE = re.compile(
    rf"table (?P<file>{_TEXT}) part (?P<part>{_TEXT}): (?P<rows>{_NUMBER}) rows"
    rf"(?:, (?P<hidden>{_NUMBER}) more columns)?"
)
_COLUMN = re.compile(
    rf"column (?P<name>{_TEXT}): (?P<kind>number|integer|time|text|flag)"
    rf", (?P<distinct>{_NUMBER}) distinct(?:, (?P<missing>{_NUMBER}) missing)?"
    rf"(?:, from (?P<low>{_TEXT}) to (?P<high>{_TEXT}))?"
    rf"(?:, spellings (?P<spellings>\{{{_TEXT}: {_TEXT}(?:, {_TEXT}: {_TEXT})*\}}))?"
    rf"(?:, values (?P<values>\[(?:{_TEXT}(?:, {_TEXT})*)?\]))?"
)
_MATCH = re.compile(
    rf"match (?P<words>{_TEXT}) (?P<how>is|is a form of) (?P<value>{_TEXT}) in (?P<column>{_TEXT})"
)


def merged(
    known: Mapping[TableId, TableProfile], report_text: str
) -> Mapping[TableId, TableProfile]:
    """Return known profiles with the profiles of a further report, as `profile_tables` prints.

    A text with no profiles, several reports or damaged ones adds nothing. Of a known table with as
    many rows, the matches of a report without columns count.
    """
    found = dict(known)
    is_brief, tables = _read(report_text)
    for table in tables:
        before = found.get(table.id)
        if before is None or before.rows != table.rows:
            if not is_brief:
                found[table.id] = table
            continue
        brief = replace(table, columns=before.columns, hidden=before.hidden)
        new = brief if is_brief else table
        if new.columns == before.columns:
            matches, searched = {**before.matches, **new.matches}, before.searched | new.searched
            new = replace(new, matches=matches, searched=searched)
        found[table.id] = new
    return found


def _read(report_text: str) -> tuple[bool, tuple[TableProfile, ...]]:
    """Return the profiles in a text, and whether they are without columns."""
    lines = report_text.split("\n")
    firsts = [(at, found) for at, line in enumerate(lines) if (found := _FIRST.fullmatch(line))]
    if len(firsts) != 1:
        return False, ()
    ((at, first),) = firsts
    body = lines[at + 1 :]
    ends = ((at, found) for at, line in enumerate(body, 1) if (found := _LAST.fullmatch(line)))
    end, last = next(ends, (0, None))
    if last is None or last["lines"] != str(end):
        return False, ()
    try:
        request = _text(first["request"])
        searched = frozenset({request} if request else ())
        groups = re.split(r"\n(?=table )", "\n".join(body[: end - 1]))
        tables = tuple(_profile(group.split("\n"), searched) for group in groups)
    except (ValueError, RecursionError):
        return False, ()
    return bool(first["brief"]), tables if len(tables) == int(first["tables"]) else ()


def _profile(lines: list[str], searched: frozenset[str]) -> TableProfile:
    head = _parsed(_TABLE, lines[0])
    columns = []
    matches: dict[str, list[ValueMatch]] = {}
    for line in lines[1:]:
        if line.startswith("column "):
            columns.append(_column(_parsed(_COLUMN, line)))
        else:
            match = _parsed(_MATCH, line)
            is_exact = match["how"] == "is"
            value = ValueMatch(_text(match["column"]), _text(match["value"]), is_exact)
            matches.setdefault(_text(match["words"]), []).append(value)
    names = {column.name for column in columns}
    if len(names) != len(columns):
        raise ValueError("a column occurs twice")
    return TableProfile(
        TableId(_text(head["file"]), _text(head["part"])),
        int(head["rows"]),
        tuple(columns),
        {words: tuple(found) for words, found in matches.items()},
        searched,
        int(head["hidden"] or 0),
    )


def _column(found: re.Match[str]) -> ColumnProfile:
    values = found["values"]
    return ColumnProfile(
        _text(found["name"]),
        cast("Kind", found["kind"]),
        int(found["distinct"]),
        int(found["missing"] or 0),
        _text(found["low"] or '""'),
        _text(found["high"] or '""'),
        tuple(json.loads(values)) if values else None,
        json.loads(found["spellings"] or "{}"),
    )


def _parsed(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    found = pattern.fullmatch(line)
    if found is None:
        raise ValueError("no line of a profile")
    return found


def _text(literal: str) -> str:
    return str(json.loads(literal))
