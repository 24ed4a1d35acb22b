"""Finds archival records: words weighed by bm25, with a boost for what is recent and important.

Only rare words are weighed. A word in very many records says little; it fills the remaining places,
newest first. So no query is slow, whatever its words. Every word is quoted, so none is an operator.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.tiers import matches
from taskweaver.memory.branched.tiers.archival import COLUMNS, Archival, record
from taskweaver.memory.branched.tiers.branches import Branches
from taskweaver.memory.branched.types import Branch, Path, Record
from taskweaver.memory.branched.values import tag_filter
from taskweaver.utils.ranking import MOST_WORDS, WORD

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
        self,
        connection: sqlite3.Connection,
        branch: Branch,
        query: str,
        k: int,
        *,
        tags: Sequence[str] = (),
        at: int | None = None,
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
        path = self._branches.path(connection, branch, "archival", at)
        if words:
            most = max(k, _RERANKED if self._rerank else 0)
            if self._database.has_search:
                found = self._indexed(connection, path, words, most, tags)
            else:
                seen = self._archival.visible(connection, branch, tags=tags, at=at)
                found = _scanned(path, seen, words, most)
            if found:
                return self._reranked(query, found)[:k]
        newest = self._archival.visible(connection, branch, tags=tags, at=at)
        if self._database.has_search and matches.has_terms(tags):
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
        """Return the `k` best of scored rows, best first, reading no more of them than needed.

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
        """Return those of some rows that are seen, not overlaid, and have all tags."""
        ends = {segment.branch: segment.up_to for segment in path}
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
        rows = matches.newest(connection, path, words, tags)
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
    """Return the words of a query, each once; the index folds capitals, in its own way."""
    found: dict[str, str] = {}
    for word in (*WORD.findall(query), *_more_words(query)):
        found.setdefault(word.lower(), word)
    return list(found.values())


def _more_words(text: str) -> list[str]:
    """Return the parts of a text that may be words, though they are not all letters."""
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
    return sorted(found, key=_rank)[:k]


def _rare(connection: sqlite3.Connection, words: Sequence[str]) -> list[str]:
    """Return the words that are weighed, the rarest first."""
    most = min(_COMMON, _COMMON * _LONG // len(words))
    counts = {word: matches.count(connection, word, most + 1) for word in words}
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
    """Return bm25 and branch of the visible rows with any of some rare words."""
    if not words:
        return {}
    tagged = matches.tagged(connection, words, tags) if tags else None
    return {
        seq: (score, number)
        for seq, number, score in matches.scored(connection, path, words)
        if tagged is None or seq in tagged
    }


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


def _rank(item: Record) -> tuple[float, int]:
    return -item.score, -item.seq
