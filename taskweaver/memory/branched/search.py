"""Finds archival records: words weighed by bm25, with a boost for what is recent and important.

A word that stands in very many records tells little; it is not weighed, it only fills up what is
left, newest first. So no query is slow, whatever its words. Every word is quoted, so none is an
operator.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from taskweaver.memory.branched.archival import COLUMNS, Archival, record
from taskweaver.memory.branched.branches import Branches
from taskweaver.memory.branched.database import Database
from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.types import Branch, Path, Record
from taskweaver.memory.branched.values import tag_filter

Reranker = Callable[[str, Sequence[str]], Sequence[float]]
"""Scores texts for a query, from 0 to 1; an embedding model, for instance. None is needed."""

_WORD = re.compile(r"\w+")
_MOST_WORDS = 32
_COMMON = 400
"""A word in more records than this is not weighed."""

_MOST_STEPS = 1500
_AT_ONCE = 32
_RECENCY = 0.3
_IMPORTANCE = {"LLM_INSIGHT": 0.1, "ERROR": 0.1, "SUCCESS": 0.1, "IDEA_MD": 0.1}
_RERANKED = 50


class Search:
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
        words = list(dict.fromkeys(_WORD.findall(query.lower())))[:_MOST_WORDS]
        newest = self._archival.visible(connection, branch, tags=tags, at=at)
        if not words:
            return list(islice(newest, k))
        path = self._branches.path(connection, branch, "archival", at)
        ask = self._indexed if self._database.has_search else self._scanned
        found = ask(connection, branch, path, words, max(k, _RERANKED if self._rerank else 0), tags)
        if not found:
            return [replace(item, match="recency") for item in islice(newest, k)]
        return self._reranked(query, found)[:k]

    def _indexed(
        self,
        connection: sqlite3.Connection,
        branch: Branch,
        path: Path,
        words: list[str],
        k: int,
        tags: Sequence[str],
    ) -> list[Record]:
        rare = [word for word in words if not _is_common(connection, word)]
        seqs = _ranked(connection, path, rare) if rare else {}
        best = self._load(connection, path, seqs, tags)
        ranked = sorted(
            (replace(item, score=_boosted(seqs[item.seq], item, path)) for item in best),
            key=lambda item: (-item.score, -item.seq),
        )
        if len(ranked) >= k or len(rare) == len(words):
            return ranked[:k]
        common = [word for word in words if word not in rare]
        taken = {item.id for item in ranked}
        fill = self._newest_with(connection, branch, path, common, tags)
        return ranked + list(
            islice((item for item in fill if item.id not in taken), k - len(ranked))
        )

    def _load(
        self,
        connection: sqlite3.Connection,
        path: Path,
        seqs: Iterable[int],
        tags: Sequence[str],
    ) -> list[Record]:
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM archival WHERE seq IN (SELECT value FROM json_each(?))",
            (json.dumps(list(seqs)),),
        )
        found = [item for item in map(record, rows) if set(tags) <= set(item.tags)]
        return list(self._archival.current(connection, path, found))

    def _newest_with(
        self,
        connection: sqlite3.Connection,
        branch: Branch,
        path: Path,
        words: list[str],
        tags: Sequence[str],
    ) -> Iterator[Record]:
        """Yield records with any of some common words, newest first.

        The index is asked first; when it leads through too much that this branch does not see,
        the branch's own rows are looked through.
        """
        ends = {segment.branch: segment.up_to for segment in path}
        rows = connection.execute(
            "SELECT f.rowid, a.branch_id FROM archival_fts f JOIN archival a ON a.seq = f.rowid"
            " WHERE archival_fts MATCH ? ORDER BY f.rowid DESC LIMIT ?",
            (_any_of(words), _MOST_STEPS),
        )
        seen = (seq for seq, number in rows if seq <= ends.get(number, -1))
        oldest = None
        while some := list(islice(seen, _AT_ONCE)):
            oldest = some[-1]
            part = self._load(connection, path, some, tags)
            yield from sorted(part, key=lambda item: -item.seq)
        rest = self._archival.visible(connection, branch, tags=tags)
        for item in islice(rest, _MOST_STEPS):
            if (oldest is None or item.seq < oldest) and item.seq <= ends.get(item.branch, -1):
                said = set(_WORD.findall(f"{item.text} {' '.join(item.tags)}".lower()))
                if said & set(words):
                    yield item

    def _scanned(
        self,
        connection: sqlite3.Connection,
        branch: Branch,
        path: Path,
        words: list[str],
        k: int,
        tags: Sequence[str],
    ) -> list[Record]:
        """Rank without an index: look through all that is in view."""
        found = []
        ends = {segment.branch: segment.up_to for segment in path}
        for item in self._archival.visible(connection, branch, tags=tags):
            if item.seq > ends.get(item.branch, -1):
                continue
            said = _WORD.findall(f"{item.text} {' '.join(item.tags)}".lower())
            hits = [said.count(word) for word in words if word in said]
            if hits:
                score = len(hits) + sum(math.log(hit) for hit in hits) / 10
                found.append(replace(item, score=_boosted(score, item, path)))
        return sorted(found, key=lambda item: (-item.score, -item.seq))[:k]

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


def _any_of(words: Iterable[str]) -> str:
    """Return words as a query: each quoted, any of them."""
    return " OR ".join(f'"{word}"' for word in words)


def _is_common(connection: sqlite3.Connection, word: str) -> bool:
    row = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM archival_fts WHERE archival_fts MATCH ? LIMIT ?)",
        (_any_of([word]), _COMMON + 1),
    ).fetchone()
    return bool(row[0] > _COMMON)


def _ranked(connection: sqlite3.Connection, path: Path, words: list[str]) -> dict[int, float]:
    """Return the visible records with any of some rare words, and their bm25 (higher is better)."""
    ends = {segment.branch: segment.up_to for segment in path}
    rows = connection.execute(
        "SELECT f.rowid, a.branch_id, -bm25(archival_fts) FROM archival_fts f"
        " JOIN archival a ON a.seq = f.rowid WHERE archival_fts MATCH ?",
        (_any_of(words),),
    )
    return {seq: score for seq, number, score in rows if seq <= ends.get(number, -1)}


def _boosted(score: float, item: Record, path: Path) -> float:
    """Raise a score by up to a third for a recent record, and for some tags.

    The age is counted in branches, from the record's to the one that asks.
    """
    distance = next(place for place, segment in enumerate(path) if segment.branch == item.branch)
    recency = _RECENCY / (1 + distance)
    importance = max((_IMPORTANCE.get(tag, 0.0) for tag in item.tags), default=0.0)
    return max(score, 1e-6) * (1 + recency + importance)
