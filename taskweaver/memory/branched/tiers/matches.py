"""Queries of the full-text index: which records have which words, of the branches that are seen.

Each row of the index holds a word for its branch in the column ``place``, so a match expression
can name the branches. Naming one costs as much as a rare word, so it is done where words alone
would lead through many records of other branches. A branch is named whole: rows that an ancestor
wrote after the fork match as well, and the caller leaves them out by their number.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge

from taskweaver.memory.branched.types import Path, Segment
from taskweaver.utils.ranking import any_of

_ASCII_WORD = re.compile(r"[0-9A-Za-z_]")
_TOGETHER, _MOST_TOGETHER = 8, 256
"""Ancestors that are named in the first query, and, doubled each time, at most in one.

Each ancestor makes all rows of its query a little slower, and each query starts anew.
"""
_MANY = 64
"""Branches from which on it may be faster to look up the branch of each match."""

_MATCHES_PER_BRANCH = 100
"""Matches whose branches are looked up in the time that it takes to name one branch."""


def count(connection: sqlite3.Connection, word: str, most: int) -> int:
    """Return how many records of all branches have a word, counting no further than `most`."""
    return _count(connection, _any_of([word]), most)


def _count(connection: sqlite3.Connection, expression: str, most: int) -> int:
    row = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM archival_fts WHERE archival_fts MATCH ? LIMIT ?)",
        (expression, most),
    ).fetchone()
    return int(row[0])


def scored(
    connection: sqlite3.Connection, path: Path, words: Iterable[str]
) -> Iterator[tuple[int, int, float]]:
    """Yield row, branch and bm25 of the visible records with any of some words that few have.

    The bm25 of several words is the sum of theirs; higher is better.
    """
    ends = {segment.branch: segment.up_to for segment in path}
    rows = connection.execute(
        "SELECT f.rowid, a.branch_id, -bm25(archival_fts)"
        " FROM archival_fts f CROSS JOIN archival a ON a.seq = f.rowid"
        " WHERE archival_fts MATCH ? AND a.branch_id IN (SELECT value FROM json_each(?))",
        (_any_of(words), json.dumps(list(ends))),
    )
    return (row for row in rows if row[0] <= ends[row[1]])


def tagged(
    connection: sqlite3.Connection, words: Iterable[str], tags: Sequence[str]
) -> set[int] | None:
    """Return the rows of all branches with any of some rare words, and perhaps with all tags.

    Returns:
        None if the index cannot distinguish the tags from others; a row may lack them in any case.
    """
    if not (terms := _tag_terms(tags)):
        return None
    rows = connection.execute(
        "SELECT rowid FROM archival_fts WHERE archival_fts MATCH ?",
        (_all_of([_any_of(words), *terms]),),
    )
    return {seq for (seq,) in rows}


def newest(
    connection: sqlite3.Connection, path: Path, words: Sequence[str], tags: Sequence[str]
) -> Iterator[int]:
    """Yield rows with any of some words and all of some tags, newest first.

    They are rows of branches on the path, and may lie beyond the seen part of them.

    Args:
        connection: Open on the file.
        path: The segments that are seen.
        words: The words; none for any text.
        tags: The tags; those that the index cannot distinguish are left to the caller.
    """
    wanted = _all_of([*([_any_of(words)] if words else []), *_tag_terms(tags)])

    def fetch(segments: Sequence[Segment]) -> Iterator[int]:
        most = _MATCHES_PER_BRANCH * len(segments)
        if len(segments) >= _MANY and _count(connection, wanted, most) < most:
            return _joined(connection, wanted, segments)
        rows = connection.execute(
            "SELECT rowid FROM archival_fts WHERE archival_fts MATCH ? AND rowid <= ?"
            " ORDER BY rowid DESC",
            (_all_of([wanted, _places(segments)]), segments[0].up_to),
        )
        return (seq for (seq,) in rows)

    # As in `branches.newest_first`: closed segments follow each other in time, live ones do not.
    live = [segment for segment in path[1:] if segment.up_to == path[0].up_to]
    closed = [segment for segment in path[1:] if segment not in live]

    def walk() -> Iterator[int]:
        yield from fetch(path[:1])
        start, size = 0, _TOGETHER
        while group := closed[start : start + size]:
            yield from fetch(group)
            start, size = start + size, min(2 * size, _MOST_TOGETHER)

    yield from merge(walk(), fetch(live), key=lambda seq: -seq) if live else walk()


def _joined(
    connection: sqlite3.Connection, wanted: str, segments: Sequence[Segment]
) -> Iterator[int]:
    """Yield the rows of some branches that match an expression, newest first, by a look at each."""
    rows = connection.execute(
        "SELECT f.rowid FROM archival_fts f CROSS JOIN archival a ON a.seq = f.rowid"
        " WHERE archival_fts MATCH ? AND f.rowid <= ?"
        " AND a.branch_id IN (SELECT value FROM json_each(?)) ORDER BY f.rowid DESC",
        (wanted, segments[0].up_to, json.dumps([segment.branch for segment in segments])),
    )
    return (seq for (seq,) in rows)


def has_terms(tags: Sequence[str]) -> bool:
    """Return whether the index can distinguish records with some of these tags."""
    return bool(_tag_terms(tags))


def _any_of(words: Iterable[str]) -> str:
    """Return an expression for words in text or tags: each quoted, any of them."""
    return f"{{text tags}} : ({any_of(words)})"


def _all_of(parts: Iterable[str]) -> str:
    return " AND ".join(parts)


def _places(segments: Iterable[Segment]) -> str:
    return f"place : ({any_of(f'b{segment.branch}' for segment in segments)})"


def _tag_terms(tags: Sequence[str]) -> list[str]:
    """Return the terms of the index for tags: the phrase of each that is sure to be one there.

    Tags are stored as JSON, which writes control characters in another way; and a tag without any
    letter that the index knows would match nothing.
    """
    return [
        'tags : "' + tag.replace('"', '""') + '"'
        for tag in tags
        if _ASCII_WORD.search(tag) and tag.isprintable()
    ]
