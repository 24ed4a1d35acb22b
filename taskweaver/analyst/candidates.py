"""Files that a request may be about, chosen by the names of their columns before any look."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from taskweaver.analyst.files.world import FileInfo
from taskweaver.analyst.language.words.lexicon import LEXICON
from taskweaver.analyst.language.words.names import name_words

_SHORTEST_CHARS = 3


def files_with_columns_of(text: str, files: Sequence[FileInfo]) -> tuple[str, ...]:
    """Return the files with a column that has a word of a request in its name."""
    words = frozenset(name_words(text))
    return tuple(
        file.name
        for file in files
        if any(_is_named(column, words) for part in file.parts for column in part.columns)
    )


def tables_among(files: Sequence[FileInfo], unreadable: Collection[str]) -> tuple[str, ...]:
    """Return the files that may hold a table: a text without columns is none."""
    return tuple(
        file.name
        for file in files
        if file.name not in unreadable
        and (file.parts or PurePosixPath(file.name).suffix.lower() != ".txt")
    )


def _is_named(column: str, words: frozenset[str]) -> bool:
    own = set(name_words(column))
    content = {word for word in own if len(word) >= _SHORTEST_CHARS and word not in LEXICON}
    return bool(content & words) or (bool(own) and own <= words)
