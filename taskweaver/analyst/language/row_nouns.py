"""Nouns that may stand for the rows of a table, by the evidence of its names.

The evidence is the name of the file, sheet or table, the name of the column that identifies the
rows, and, where these are unknown words, the names of the columns. Nouns without evidence may be
things that the table does not have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePosixPath

from taskweaver.analyst.language.names import is_named_after, name_words, singular
from taskweaver.tables.files.profile import TableProfile

_NO_NOUNS = frozenset("list data file table the of csv final new raw clean export report".split())
_NO_NAME = re.compile(r"(?:sheet|tabelle|blatt|table|data|daten|main)?[\s_]*\d*", re.IGNORECASE)
_LABELS = frozenset("id key code number no nr name title label full".split())
_LEAST_COLUMNS = 2


@dataclass(frozen=True, slots=True)
class _Thing:
    """Nouns of one thing, with the words of names that are evidence of it.

    Attributes:
        nouns: The nouns as written, and their singulars.
        names: Words of tables and identifying columns.
        columns: Words or whole names of columns.
    """

    nouns: frozenset[str]
    names: frozenset[str]
    columns: frozenset[str]

    @property
    def own(self) -> frozenset[str]:
        """Results of the thing itself: ``inspection_score``."""
        results = (name for name in self.columns if name.endswith(("_score", "_result")))
        return frozenset(name for name in results if name.partition("_")[0] in self.nouns)


def _thing(line: str) -> _Thing:
    nouns, names, columns = (frozenset(part.split()) for part in line.split(":"))
    nouns |= set(map(singular, nouns))
    named = frozenset("_".join(name_words(name)) for name in columns)
    return _Thing(nouns, nouns | set(map(singular, names)), named)


_THINGS = tuple(
    _thing(line)
    for line in files(__package__).joinpath("row_nouns.txt").read_text("utf-8").splitlines()
    if line[:1] != "#"
)


def forms_of(word: str) -> frozenset[str]:
    """Return a noun in lower case with its singulars in English and German."""
    return frozenset({word, singular(word), *map(word.removesuffix, ("en", "n", "e"))})


def nouns_of(table: TableProfile) -> frozenset[str]:
    """Return the nouns that may stand for the rows of a table, singulars among them."""
    part, stem = table.id.part, PurePosixPath(table.id.file).stem
    named = _words(stem if _NO_NAME.fullmatch(part) else part)
    identifying = {
        word
        for column in table.columns
        if column.kind == "text" and column.distinct == table.rows > 1
        for word in _words(column.name) - _LABELS
    }
    columns = {word for one in table.columns for word in name_words(one.name)}
    columns |= {"_".join(name_words(one.name)) for one in table.columns}
    things = [thing for thing in _THINGS if thing.names & named] or [
        thing
        for thing in _THINGS
        if thing.names & identifying or len(thing.columns & columns) >= _LEAST_COLUMNS
    ]
    things += [thing for thing in _THINGS if thing.own & columns]
    shown = (thing.nouns for thing in things if thing.nouns & named or not _repeats(table, thing))
    values = {value.casefold() for column in table.columns for value in column.values or ()}
    return named | (frozenset().union(*shown) - values)


def _words(name: str) -> frozenset[str]:
    """Return the words of a name, in the singular and all in one."""
    found = {word for word in name_words(name) if not word.isdigit() and len(word) > 2}
    joined = re.sub(r"\W|_|\d", "", name.casefold())
    return frozenset(found | {joined} - {""}) - _NO_NOUNS


def _repeats(table: TableProfile, thing: _Thing) -> bool:
    """Return whether a column names a thing that has several rows: a ``player`` of matches."""
    return any(
        column.distinct < table.rows
        and any(is_named_after(one, column.name) for one in thing.nouns)
        for column in table.columns
        if column.kind in ("text", "integer")
    )
