"""Tables and joins that a request may be about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import PurePosixPath

from taskweaver.analyst.language.lookup.scope import DataScope
from taskweaver.analyst.language.words.names import name_words
from taskweaver.analyst.readings.reading import TableSource
from taskweaver.tables.files.profile import TableId, TableProfile

_NO_NOUNS = frozenset("list data file table the of csv final new raw clean export report".split())
_MAX_TABLES = 12


@dataclass(frozen=True, slots=True)
class Wanted:
    """Files and parts that a request names.

    Attributes:
        files: Files it certainly names.
        parts: Parts of files it certainly names.
        likely: Files its words may name.
    """

    files: tuple[str, ...] = ()
    parts: tuple[TableId, ...] = ()
    likely: tuple[str, ...] = ()


def nouns_of(table: TableId) -> frozenset[str]:
    """Return the nouns, in the singular, that a table is named after."""
    name = table.part or PurePosixPath(table.file).stem
    found = {word for word in name_words(name) if not word.isdigit() and len(word) > 2}
    joined = re.sub(r"\W|_|\d", "", name.casefold())
    return frozenset(found | {joined} - {""}) - _NO_NOUNS


def scopes(
    tables: Mapping[TableId, TableProfile], wanted: Wanted, choices: Mapping[str, str]
) -> list[DataScope]:
    """Return a scope for each single table that a request may be about."""
    nouns = frozenset(noun for id in tables for noun in nouns_of(id))
    return [
        DataScope(
            TableSource((id,)),
            (table,),
            nouns_of(id),
            other_nouns=nouns - nouns_of(id),
            choices=choices,
        )
        for id, table in list(_allowed(tables, wanted))[:_MAX_TABLES]
        if table.columns
    ]


def _allowed(
    tables: Mapping[TableId, TableProfile], wanted: Wanted
) -> Iterable[tuple[TableId, TableProfile]]:
    for id, table in tables.items():
        if wanted.parts and id not in wanted.parts and id.file in {p.file for p in wanted.parts}:
            continue
        if not wanted.files or id.file in wanted.files:
            yield id, table


def joins(
    tables: Mapping[TableId, TableProfile], wanted: Wanted, choices: Mapping[str, str]
) -> list[DataScope]:
    """Return a scope for each two tables that can be joined on a shared key."""
    files = Wanted(wanted.files)  # a part that is named may be joined with another
    allowed = list(_allowed(tables, files))[:_MAX_TABLES]
    found = []
    for (left_id, left), (right_id, right) in permutations(allowed, 2):
        on = _shared(left, right)
        if on and _is_key(right, on) and (left.rows > right.rows or not _is_key(left, on)):
            scope = DataScope(
                TableSource((left_id, right_id), (on,)), (left, right), nouns_of(left_id),
                nouns_of(right_id) - nouns_of(left_id), choices=choices,
            )  # fmt: skip
            found.append(scope)
    return found


def _shared(left: TableProfile, right: TableProfile) -> tuple[str, ...]:
    names = {column.name for column in right.columns}
    both = tuple(column.name for column in left.columns if column.name in names)
    ids = tuple(name for name in both if "id" in name_words(name) or "key" in name_words(name))
    return ids[:1] or (both if len(both) == 1 else ())


def _is_key(table: TableProfile, on: Sequence[str]) -> bool:
    return any(column.name in on and column.distinct == table.rows for column in table.columns)
