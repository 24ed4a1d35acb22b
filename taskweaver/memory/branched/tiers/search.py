"""Search in archival memory: words weighed by bm25, with a boost for recent and important records.

Only rare words are weighed. A word in very many records says little; it fills the remaining places,
newest first. So no query is slow, whatever its words. Records whose vectors are near the query are
fused in by rank.

Each row of the index has a term for its branch in the column ``marks``, so a match expression
can name the branches. Naming one costs as much as a rare word, so it is done where words alone
would lead through many records of other branches. A branch is named whole: rows that an ancestor
wrote after the fork match as well, and the caller leaves them out by their number.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice, takewhile

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.storage.schema import RECORDS
from taskweaver.memory.branched.tiers.archival import COLUMNS, Archival, record
from taskweaver.memory.branched.tiers.branches import Branches, BranchView, split
from taskweaver.memory.branched.tiers.indexing import (
    MemoryIndex,
    is_behind,
    last,
    place_mark,
    tag_mark,
)
from taskweaver.memory.branched.types import Path, Record, Segment
from taskweaver.memory.branched.values import checked_tags
from taskweaver.utils.retrieval import (
    FUSED,
    LEAST_PARTS,
    Terms,
    any_of,
    expression,
    fused,
    query_terms,
    score_of,
    shares,
    terms,
)

_COMMON = 400
"""A word in more records than this is not weighed."""

_MOST_ROWS = 1000
"""The rarest words are weighed until they stand in this many records together."""

_PARTS_A_WORD = 4
"""How many times rarer a part of a word must be to be weighed."""

_LONG = 10
"""Number of words from which on a word counts as common in fewer records."""

_FIRST_COMMON, _MORE = 2, 4
"""Common words that are looked for first, and how many times more if those find too little."""

_AT_LEAST, _AT_ONCE = 8, 32
"""Records that are read in one query."""

_RECENCY = 0.3
_IMPORTANCE = {"LLM_INSIGHT": 0.1, "ERROR": 0.1, "SUCCESS": 0.1, "IDEA_MD": 0.1}
_NEAR_AT_ONCE = 24
"""Near records whose branches are looked up first, and doubled each time."""


@dataclass
class ArchivalSearch:
    """Search in the archival memory of all branches."""

    _database: Database
    _branches: Branches
    _archival: Archival
    _index: MemoryIndex

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
        tags = checked_tags("tags", tags)
        if k <= 0:
            return []
        wanted = query_terms(query)
        if wanted.words and (found := self._found(view, query, wanted, k, tags)):
            return found
        newest = self._archival.visible(view, tags=tags)
        if self._is_indexed(view) and tags:
            newest = self._newest_with(view, (), tags, k)
        chosen = list(islice(newest, k))
        return [replace(item, match="recency") for item in chosen] if wanted.words else chosen

    def _is_indexed(self, view: BranchView) -> bool:
        return self._database.has_search and not is_behind(view.connection, RECORDS)

    def _newer(self, view: BranchView) -> Iterator[Record]:
        """Yield records in view that are not indexed, the newest first, at most `_MOST_ROWS`."""
        if not self._database.has_search:
            return self._archival.visible(view)
        end = last(view.connection, RECORDS)
        newer = takewhile(lambda item: item.seq > end, self._archival.visible(view))
        return islice(newer, _MOST_ROWS)

    def _found(
        self, view: BranchView, query: str, wanted: Terms, k: int, tags: Sequence[str]
    ) -> list[Record]:
        """Return at most `k` records that answer a query, best first."""
        connection, path = view.connection, self._branches.path(view, "archival")
        most = max(k, FUSED) if self._index.has_vectors else k
        rare, rankings = wanted, []
        if not self._is_indexed(view):
            newer = (item for item in self._newer(view) if set(tags) <= set(item.tags))
            rankings.append(_scanned(path, newer, wanted, most))
        if self._database.has_search:
            rare = _rare(connection, wanted)
            scored = _scored(connection, path, rare, tags)
            sure = _with_words(connection, rare.words) if rare.parts else scored.keys()

            def answers(item: Record) -> bool:
                return item.seq in sure or shares(wanted, " ".join([item.text, *item.tags]))

            rankings.append(self._best(view, scored, most, tags, answers))
        rankings.append(list(islice(self._near(view, query, tags), FUSED)))
        taken = {item.id: item for item in _fused(rankings, k)}
        rest = [word for word in wanted.words if word not in rare.words]
        common = sorted(rest, key=len, reverse=True)
        start, size = 0, _FIRST_COMMON  # the longest first: short ones say the least
        while len(taken) < k and (some := common[start : start + size]):
            start, size = start + size, size * _MORE
            for item in self._newest_with(view, some, tags, k - len(taken)):
                taken.setdefault(item.id, item)
                if len(taken) == k:
                    break
        return list(taken.values())

    def _near(self, view: BranchView, query: str, tags: Sequence[str]) -> Iterator[Record]:
        """Yield visible records whose vectors are near a query and that have all tags."""
        ends, size = dict(self._branches.path(view, "archival")), _NEAR_AT_ONCE
        numbers = self._index.near(view.connection, query)
        placed = "SELECT seq, branch_id FROM archival WHERE seq IN (SELECT value FROM json_each(?))"
        while some := list(islice(numbers, size)):
            size *= 2
            rows = view.connection.execute(placed, (json.dumps(some),))
            seen = {seq for seq, branch in rows if seq <= ends.get(branch, -1)}
            found = {item.seq: item for item in self._load(view, seen, tags)}
            yield from (found[seq] for seq in some if seq in found)

    def _best(
        self,
        view: BranchView,
        scored: Mapping[int, tuple[float, int]],
        k: int,
        tags: Sequence[str],
        answers: Callable[[Record], bool],
    ) -> list[Record]:
        """Return the `k` best of scored rows, best first, reading no more rows than needed.

        Args:
            view: The view.
            scored: The bm25 and the branch of each row.
            k: Number of records.
            tags: Tags that a record must have.
            answers: Returns whether a record has enough of the query.
        """
        path = self._branches.path(view, "archival")
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
            for item in self._load(view, order[start : start + size], tags):
                score = _boosted(scored[item.seq][0], distances[item.branch], _importance(item))
                if answers(item):
                    best.append((score, item))
            best.sort(key=lambda scored: (-scored[0], -scored[1].seq))
        return [replace(item, score=score) for score, item in best[:k]]

    def _load(self, view: BranchView, seqs: Iterable[int], tags: Sequence[str]) -> list[Record]:
        """Return the given rows that are seen, not overlaid, and have all tags."""
        ends = dict(self._branches.path(view, "archival"))
        rows = view.connection.execute(
            f"SELECT {COLUMNS} FROM archival WHERE seq IN (SELECT value FROM json_each(?))",
            (json.dumps(list(seqs)),),
        )
        seen = (record(row) for row in rows if row[0] <= ends.get(row[1], -1))
        found = [item for item in seen if set(tags) <= set(item.tags)]
        return list(self._archival.current(view, found))

    def _newest_with(
        self, view: BranchView, words: Sequence[str], tags: Sequence[str], some: int
    ) -> Iterator[Record]:
        """Yield visible records with any of some words and all tags, newest first.

        They are read `some` at once.
        """
        path = self._branches.path(view, "archival")
        rows = _newest_rows(view.connection, path, words, tags)
        while part := list(islice(rows, some)):
            found = self._load(view, part, tags)
            yield from sorted(found, key=lambda item: -item.seq)
            some = _AT_ONCE


def _fused(rankings: Sequence[Sequence[Record]], k: int) -> list[Record]:
    """Return the `k` best records of rankings, the best first."""
    if sum(map(bool, rankings)) < 2:
        return [item for ranking in rankings for item in ranking][:k]
    items = {item.seq: item for ranking in rankings for item in ranking}
    scores = fused([[item.seq for item in ranking] for ranking in rankings])
    return [replace(items[seq], score=score) for seq, score in islice(scores.items(), k)]


def _scanned(path: Path, seen: Iterable[Record], wanted: Terms, k: int) -> list[Record]:
    """Rank records without an index."""
    found = []
    distances = {segment.branch: place for place, segment in enumerate(path)}
    for item in seen:
        own = terms(" ".join([item.text, *item.tags]))
        counts = [count for word in wanted.words if (count := own.words.count(word))]
        parts = len(set(wanted.parts).intersection(own.parts))
        if counts or parts >= LEAST_PARTS:
            score = len(counts) + (sum(map(math.log, counts)) + parts) / 10
            score = _boosted(score, distances[item.branch], _importance(item))
            found.append(replace(item, score=score))
    return sorted(found, key=lambda item: (-item.score, -item.seq))[:k]


def _rare(connection: sqlite3.Connection, wanted: Terms) -> Terms:
    """Return the terms that are weighed."""
    most = min(_COMMON, _COMMON * _LONG // max(len(wanted.words), 1))
    words = _rarest(connection, "words", wanted.words, most, _MOST_ROWS)
    parts = _rarest(
        connection, "parts", wanted.parts, most // _PARTS_A_WORD, _MOST_ROWS // _PARTS_A_WORD
    )
    return Terms(words, parts)


def _rarest(
    connection: sqlite3.Connection, column: str, wanted: Sequence[str], most: int, together: int
) -> list[str]:
    """Return the terms in few records of all branches, the rarest first.

    Args:
        connection: Open on the file.
        column: Column of the terms.
        wanted: The terms.
        most: Most records of a term.
        together: Most records of all terms; the first term may exceed it.
    """
    counts = connection.execute(
        f"SELECT value, (SELECT count(*) FROM (SELECT 1 FROM {RECORDS}"
        f" WHERE {RECORDS} MATCH '{column} : \"' || value || '\"' LIMIT ?)) FROM json_each(?)",
        (most + 1, json.dumps(wanted)),
    ).fetchall()
    rare: list[str] = []
    rows = 0
    for word, count in sorted(counts, key=lambda pair: int(pair[1])):
        rows += count
        if count > most or (rare and rows > together):
            break
        rare.append(word)
    return rare


def _with_words(connection: sqlite3.Connection, words: Sequence[str]) -> set[int]:
    """Return the rows of all branches with any of some words, which are in few rows."""
    if not words:
        return set()
    query = f"SELECT rowid FROM {RECORDS} WHERE {RECORDS} MATCH ?"
    return {seq for (seq,) in connection.execute(query, (expression(Terms(list(words), [])),))}


def _scored(
    connection: sqlite3.Connection, path: Path, rare: Terms, tags: Sequence[str]
) -> dict[int, tuple[float, int]]:
    """Return bm25 and branch of the visible rows with some rare terms and the tags.

    The bm25 of several terms is the sum of theirs; higher is better.
    """
    asked = expression(rare)
    if not asked:
        return {}
    ends = dict(path)
    rows = connection.execute(
        f"SELECT f.rowid, a.branch_id, {score_of(RECORDS)}"
        f" FROM {RECORDS} f CROSS JOIN archival a ON a.seq = f.rowid"
        f" WHERE {RECORDS} MATCH ? AND a.branch_id IN (SELECT value FROM json_each(?))",
        (asked, json.dumps(list(ends))),
    )
    found = {seq: (score, number) for seq, number, score in rows if seq <= ends[number]}
    if tags:
        tagged = connection.execute(
            f"SELECT rowid FROM {RECORDS} WHERE {RECORDS} MATCH ?",
            (_all_of([f"({asked})", *_tag_terms(tags)]),),
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
        f"SELECT count(*) FROM (SELECT 1 FROM {RECORDS} WHERE {RECORDS} MATCH ? LIMIT ?)",
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
        tags: The tags.
    """
    named = expression(Terms(list(words), []))
    wanted = _all_of([*([named] if words else []), *_tag_terms(tags)])

    def fetch(segments: Sequence[Segment]) -> Iterator[int]:
        most = _MATCHES_PER_BRANCH * len(segments)
        if len(segments) >= _MANY and _count(connection, wanted, most) < most:
            return _joined(connection, wanted, segments)
        places = f"marks : ({any_of(place_mark(segment.branch) for segment in segments)})"
        rows = connection.execute(
            f"SELECT rowid FROM {RECORDS} WHERE {RECORDS} MATCH ? AND rowid <= ?"
            " ORDER BY rowid DESC",
            (_all_of([wanted, places]), segments[0].up_to),
        )
        return (seq for (seq,) in rows)

    live, (own, *closed) = split(path)

    def walk() -> Iterator[int]:
        yield from fetch([own])
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
        f"SELECT f.rowid FROM {RECORDS} f CROSS JOIN archival a ON a.seq = f.rowid"
        f" WHERE {RECORDS} MATCH ? AND f.rowid <= ?"
        " AND a.branch_id IN (SELECT value FROM json_each(?)) ORDER BY f.rowid DESC",
        (wanted, segments[0].up_to, json.dumps([segment.branch for segment in segments])),
    )
    return (seq for (seq,) in rows)


def _all_of(parts: Iterable[str]) -> str:
    return " AND ".join(parts)


def _tag_terms(tags: Sequence[str]) -> list[str]:
    """Return the terms of the index for tags."""
    return [f'marks : "{tag_mark(tag)}"' for tag in tags]
