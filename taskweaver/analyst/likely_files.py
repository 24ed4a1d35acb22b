"""Files that a request may be about, the likeliest first: by words of their names and columns."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from taskweaver.analyst.language.lexicon import LEXICON
from taskweaver.analyst.language.names import meanings, name_words
from taskweaver.analyst.language.row_nouns import forms_of, nouns_of
from taskweaver.tables.files.profile import ColumnProfile, FileInfo, PartInfo, TableId, TableProfile

_SHORTEST_CHARS, MOST_NAMED = 3, 5
MOST_LISTED = 30
"""Files of a list, each of which its number takes."""


def tables_among(files: Sequence[FileInfo], unreadable: Collection[str]) -> tuple[str, ...]:
    """Return the files that may hold a table: a text without columns is none."""
    return tuple(
        file.name
        for file in files
        if file.name not in unreadable
        and (file.parts or PurePosixPath(file.name).suffix.lower() != ".txt")
    )


def likeliest(text: str, files: Sequence[FileInfo], most: int = sys.maxsize) -> tuple[str, ...]:
    """Return the files whose name or columns have a word of a request, most words first.

    Of files with as many words either all are among the `most`, or none.
    """
    words = frozenset(name_words(text))
    found = {file.name: _words_in(file, words) for file in files}
    counts = sorted(found.values(), reverse=True)
    beyond = counts[max(most, 0)] if most < len(counts) else 0
    named = (name for name in found if found[name] > beyond)
    return tuple(sorted(named, key=lambda name: -found[name]))


def is_named(name: str, words: Collection[str]) -> bool:
    """Return whether a request has a telling word of a name, or all of its words."""
    return bool(_shared(name, words))


def file_about(noun: str, files: Sequence[FileInfo]) -> str:
    """Return the only file whose rows a noun in lower case may name; empty for none or several."""
    words = meanings(noun) | forms_of(noun)
    found = [
        file.name
        for file in files
        if any(words & _row_nouns(file.name, part) for part in file.parts or (PartInfo(),))
    ]
    return found[0] if len(found) == 1 else ""


@lru_cache(maxsize=512)
def _row_nouns(file: str, part: PartInfo) -> frozenset[str]:
    columns = tuple(ColumnProfile(name, "number", 0) for name in part.columns)
    return nouns_of(TableProfile(TableId(file, part.name), part.rows or 0, columns))


def naming(files: Sequence[str]) -> str:
    """Return the answer to a request that names no file, where many may be meant."""
    names = ", ".join(f"`{name}`" for name in files[:MOST_NAMED])
    more = f" or {len(files) - MOST_NAMED} more" if len(files) > MOST_NAMED else ""
    return f"Name the file, for example {names}{more}." if files else "There is no other file."


def _words_in(file: FileInfo, words: Collection[str]) -> int:
    """Return the number of words of a request that name a file or its columns."""
    columns = (_shared(column, words) for part in file.parts for column in part.columns)
    return len(_shared(PurePosixPath(file.name).stem, words).union(*columns))


def _shared(name: str, words: Collection[str]) -> frozenset[str]:
    own = frozenset(name_words(name))
    if own <= set(words):
        return own
    content = {word for word in own if len(word) >= _SHORTEST_CHARS and word not in LEXICON}
    return frozenset(content.intersection(words))
