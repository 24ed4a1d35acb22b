"""Search in archival memory: words weighed by bm25, with a boost for recent and important records.

Only rare words are weighed. A word in very many records says little; it fills the remaining places,
newest first. So no query is slow, whatever its words. Every word is quoted, so none is an operator.

Each row of the index holds a word for its branch in the column ``place``, so a match expression
can name the branches. Naming one costs as much as a rare word, so it is done where words alone
would lead through many records of other branches. A branch is named whole: rows that an ancestor
wrote after the fork match as well, and the caller leaves them out by their number.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.tiers.archival import COLUMNS, Archival, record
from taskweaver.memory.branched.tiers.branches import Branches, BranchView
from taskweaver.memory.branched.types import Path, Record, Segment
from taskweaver.memory.branched.values import tag_filter
from taskweaver.utils.ranking import MOST_WORDS, WORD, any_of

Reranker = Callable[[str, Sequence[str]], Sequence[float]]
"""Scores texts for a query, from 0 to 1; an embedding model, for instance. None is needed."""

_CHUNK = re.compile(r"[^\s\x00-/:-@\[-^`{-\x7f\ud800-\udfff]+")
"""Letters and what is beyond ASCII. The index decides what of it is a word: a letter with a mark
of its own, a sign of a vowel and a picture are none to `WORD`."""

_COMMON = 400
"""A word in more records than this is not weighed."""

_MOST_ROWS = 1000
"""The rarest words are weighed until they stand in this many records together."""

_LONG = 10
"""Number of words from which on a word counts as common in fewer records."""

_FIRST_COMMON, _MORE = 2, 4
"""Common words that are looked for first, and how many times more if those find too little."""

_AT_LEAST, _AT_ONCE = 8, 32
"""Records that are read in one query."""

_RECENCY = 0.3
_IMPORTANCE = {"LLM_INSIGHT": 0.1, "ERROR": 0.1, "SUCCESS": 0.1, "IDEA_MD": 0.1}
_RERANKED = 50


class ArchivalSearch:
    """Search in the archival memory of all branches."""

    def __init__(
        self,
        database: Database,
        branches: Branches,
        archival: Archival,
        rerank: Reranker | None = None,
    ) -> None:
        self._database = database
        self._branches = branches
        self._archival = archival
        self._rerank = rerank

    def find(
        self, view: BranchView, query: str, k: int, *, tags: Sequence[str] = ()
    ) -> list[Record]:
        """Return the `k` best records in view that have all tags, best first.

        Records that do not answer the query are returned when none does, the newest ones, with
        `match` ``recency``. An empty query returns the newest.

        Raises:
            InvalidUpdate: If the query is no text, or the tags are none.
        """
        if not isinstance(query, str):
            raise InvalidUpdate("query", "must be a text")
        tags = tag_filter(tags)
        if k <= 0:
            return []
        words = _words(query)[:MOST_WORDS]
        connection, path = view.connection, self._branches.path(view, "archival")
        if words:
            most = max(k, _RERANKED if self._rerank else 0)
            if self._database.has_search:
                found = self._indexed(connection, path, words, most, tags)
            else:
                found = _scanned(path, self._archival.visible(view, tags=tags), words, most)
            if found:
                return self._reranked(query, found)[:k]
        newest = self._archival.visible(view, tags=tags)
        if self._database.has_search and _tag_terms(tags):
            newest = self._newest_with(connection, path, (), tags, k)
        chosen = list(islice(newest, k))
        return [replace(item, match="recency") for item in chosen] if words else chosen

    def _indexed(
        self,
        connection: sqlite3.Connection,
        path: Path,
        words: list[str],
        k: int,
        tags: Sequence[str],
    ) -> list[Record]:
        rare = _rare(connection, words)
        best = self._best(connection, path, _scored(connection, path, rare, tags), k, tags)
        if len(best) >= k:
            return best
        common = sorted((word for word in words if word not in rare), key=len, reverse=True)
        taken = {item.id: item for item in best}
        start, size = 0, _FIRST_COMMON  # the longest first: short ones say the least
        while some := common[start : start + size]:
            start, size = start + size, size * _MORE
            for item in self._newest_with(connection, path, some, tags, k - len(taken)):
                taken.setdefault(item.id, item)
                if len(taken) >= k:
                    return list(taken.values())
        return list(taken.values())

    def _best(
        self,
        connection: sqlite3.Connection,
        path: Path,
        scored: Mapping[int, tuple[float, int]],
        k: int,
        tags: Sequence[str],
    ) -> list[Record]:
        """Return the `k` best of scored rows, best first, reading no more rows than needed.

        Args:
            connection: Open on the file.
            path: The segments that are seen.
            scored: The bm25 and the branch of each row.
            k: Number of records.
            tags: Tags that a record must have.
        """
        distances = {segment.branch: place for place, segment in enumerate(path)}
        highest = {
            seq: _boosted(score, distances[number], max(_IMPORTANCE.values()))
            for seq, (score, number) in scored.items()
        }
        order = sorted(highest, key=lambda seq: (highest[seq], seq), reverse=True)
        best: list[tuple[float, Record]] = []
        size = max(k, _AT_LEAST)
        for start in range(0, len(order), size):
            if len(best) >= k and best[k - 1][0] > highest[order[start]]:
                break
            for item in self._load(connection, path, order[start : start + size], tags):
                score = _boosted(scored[item.seq][0], distances[item.branch], _importance(item))
                best.append((score, item))
            best.sort(key=lambda scored: (-scored[0], -scored[1].seq))
        return [replace(item, score=score) for score, item in best[:k]]

    def _load(
        self,
        connection: sqlite3.Connection,
        path: Path,
        seqs: Iterable[int],
        tags: Sequence[str],
    ) -> list[Record]:
        """Return the given rows that are seen, not overlaid, and have all tags."""
        ends = dict(path)
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM archival WHERE seq IN (SELECT value FROM json_each(?))",
            (json.dumps(list(seqs)),),
        )
        seen = (record(row) for row in rows if row[0] <= ends.get(row[1], -1))
        found = [item for item in seen if set(tags) <= set(item.tags)]
        return list(self._archival.current(connection, path, found))

    def _newest_with(
        self,
        connection: sqlite3.Connection,
        path: Path,
        words: Sequence[str],
        tags: Sequence[str],
        some: int,
    ) -> Iterator[Record]:
        """Yield visible records with any of some words and all tags, newest first.

        They are read `some` at once.
        """
        rows = _newest_rows(connection, path, words, tags)
        while part := list(islice(rows, some)):
            found = self._load(connection, path, part, tags)
            yield from sorted(found, key=lambda item: -item.seq)
            some = _AT_ONCE

    def _reranked(self, query: str, found: list[Record]) -> list[Record]:
        if self._rerank is None:
            return found
        scores = self._rerank(query, [item.text for item in found])
        best = max((item.score for item in found), default=0) or 1
        mixed = [
            replace(item, score=(item.score / best + score) / 2)
            for item, score in zip(found, scores, strict=True)
        ]
        return sorted(mixed, key=lambda item: -item.score)


def _words(query: str) -> list[str]:
    """Return the words of a query, each once. The index folds capitals, in its own way."""
    found: dict[str, str] = {}
    for word in (*WORD.findall(query), *_more_words(query)):
        found.setdefault(word.lower(), word)
    return list(found.values())


def _more_words(text: str) -> list[str]:
    """Return the parts of a text that may be words with signs that are no letters."""
    return [part for part in _CHUNK.findall(text) if not WORD.fullmatch(part)]


def _scanned(path: Path, seen: Iterable[Record], words: list[str], k: int) -> list[Record]:
    """Rank without an index: look through all that is in view."""
    found = []
    words = [word.lower() for word in words]
    distances = {segment.branch: place for place, segment in enumerate(path)}
    for item in seen:
        text = f"{item.text} {' '.join(item.tags)}".lower()
        texts = [*WORD.findall(text), *_more_words(text)]
        hits = [texts.count(word) for word in words if word in texts]
        if hits:
            score = len(hits) + sum(math.log(hit) for hit in hits) / 10
            score = _boosted(score, distances[item.branch], _importance(item))
            found.append(replace(item, score=score))
    return sorted(found, key=lambda item: (-item.score, -item.seq))[:k]


def _rare(connection: sqlite3.Connection, words: Sequence[str]) -> list[str]:
    """Return the words that are weighed, the rarest first."""
    most = min(_COMMON, _COMMON * _LONG // len(words))
    counts = {word: _count(connection, _any_of([word]), most + 1) for word in words}
    rare: list[str] = []
    rows = 0
    for word in sorted(counts, key=lambda word: counts[word]):
        rows += counts[word]
        if counts[word] > most or (rare and rows > _MOST_ROWS):
            break
        rare.append(word)
    return rare


def _scored(
    connection: sqlite3.Connection, path: Path, words: Sequence[str], tags: Sequence[str]
) -> dict[int, tuple[float, int]]:
    """Return bm25 and branch of the visible rows with any of some rare words.

    The bm25 of several words is the sum of theirs; higher is better. Rows without the tags are left
    out as far as the index can distinguish them.
    """
    if not words:
        return {}
    ends = dict(path)
    rows = connection.execute(
        "SELECT f.rowid, a.branch_id, -bm25(archival_fts)"
        " FROM archival_fts f CROSS JOIN archival a ON a.seq = f.rowid"
        " WHERE archival_fts MATCH ? AND a.branch_id IN (SELECT value FROM json_each(?))",
        (_any_of(words), json.dumps(list(ends))),
    )
    found = {seq: (score, number) for seq, number, score in rows if seq <= ends[number]}
    if terms := _tag_terms(tags):
        tagged = connection.execute(
            "SELECT rowid FROM archival_fts WHERE archival_fts MATCH ?",
            (_all_of([_any_of(words), *terms]),),
        )
        return {seq: found[seq] for (seq,) in tagged if seq in found}
    return found


def _boosted(score: float, distance: int, importance: float) -> float:
    """Raise a score by up to a third for a recent record, and for some tags.

    Args:
        score: The score.
        distance: Age of the record in branches, from its own to the one that asks.
        importance: Highest weight of its tags.
    """
    return max(score, 1e-6) * (1 + _RECENCY / (1 + distance) + importance)


def _importance(item: Record) -> float:
    return max((_IMPORTANCE.get(tag, 0.0) for tag in item.tags), default=0.0)


_ASCII_WORD = re.compile(r"[0-9A-Za-z_]")
_TOGETHER, _MOST_TOGETHER = 8, 256
"""Ancestors that are named in the first query, and, doubled each time, at most in one.

Each ancestor makes all rows of its query a little slower, and each query starts anew.
"""
_MANY = 64
"""Branches from which on it may be faster to look up the branch of each match."""

_MATCHES_PER_BRANCH = 100
"""Matches whose branches are looked up in the time that it takes to name one branch."""


def _count(connection: sqlite3.Connection, expression: str, most: int) -> int:
    """Return how many records of all branches match, counting no further than `most`."""
    row = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM archival_fts WHERE archival_fts MATCH ? LIMIT ?)",
        (expression, most),
    ).fetchone()
    return int(row[0])


def _newest_rows(
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
        places = f"place : ({any_of(f'b{segment.branch}' for segment in segments)})"
        rows = connection.execute(
            "SELECT rowid FROM archival_fts WHERE archival_fts MATCH ? AND rowid <= ?"
            " ORDER BY rowid DESC",
            (_all_of([wanted, places]), segments[0].up_to),
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


def _any_of(words: Iterable[str]) -> str:
    """Return an expression for words in text or tags: any word, each quoted."""
    return f"{{text tags}} : ({any_of(words)})"


def _all_of(parts: Iterable[str]) -> str:
    return " AND ".join(parts)


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
