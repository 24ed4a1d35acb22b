"""Index of records and events, which searches bring up to date in batches, and no write does."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress

from taskweaver.errors import TaskWeaverError
from taskweaver.memory.branched.errors import BranchedMemoryError, StoreBusy, StoreUnwritable
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.storage.schema import EVENTS, RECORDS
from taskweaver.utils.retrieval import Embedder, Vectors, add_words

_ROWS, _CHARS = 256, 300_000
"""Most rows of a batch, and characters after which it ends."""

_MAKING_S = 2.0
"""Seconds after which a search leaves the remaining words, or vectors, to the next."""
_UNFINISHED = (
    "%s: the index of words is made in parts, and ends at row %d of %d. Until later searches have"
    " finished it, they miss some older records."
)

Row = tuple[str, int, bytes]
"""A row of ``vectors``."""

_SOURCE = "iif(is_deleted, '', text)"
"""Indexed text of a record: a closed version adds nothing to the versions before."""
_SOURCES = {
    RECORDS: ("archival", f"SELECT seq, branch_id, {_SOURCE}, tags, '' FROM archival"),
    EVENTS: ("events", "SELECT seq, branch_id, text, tags, kind FROM events"),
}


class MemoryIndex:
    """The index in a memory's file: words of records and events, vectors of records.

    Attributes:
        problem: Why the last search compared words alone despite an embedder; empty for nothing.
    """

    def __init__(self, database: Database, embedder: Embedder | None) -> None:
        self._database = database
        self._vectors = Vectors(embedder) if embedder else None
        self._is_outdated = self._is_told = False
        self.problem = ""

    def refresh(self) -> None:
        """Index the rows that are newer than the last search, before a search takes its snapshot.

        A file that cannot be written now stays as it is; `last` says how far its index goes.
        """
        if self._database.is_in_together:
            return
        with suppress(StoreBusy, StoreUnwritable), self._database.guarded():
            connection = self._database.reading
            until = time.monotonic() + _MAKING_S
            while self._database.has_search and any(is_behind(connection, n) for n in _SOURCES):
                if not self._database.write_index(self.add):
                    break
                if time.monotonic() > until:
                    self._tell_unfinished(connection)
                    break
            if self._vectors:
                self._add_vectors(connection, self._vectors)

    def _tell_unfinished(self, connection: sqlite3.Connection) -> None:
        """Warn, once, that a large memory is not yet indexed."""
        end, newest = last(connection, RECORDS), self._database.now_seq(connection)
        if is_behind(connection, RECORDS) and not self._is_told:
            self._is_told = True
            logging.getLogger(__name__).warning(_UNFINISHED, self._database.path, end, newest)

    def add(self, connection: sqlite3.Connection) -> bool:
        """Index a batch of new rows in an open transaction, and return whether there were any."""
        is_more = False
        for name, (_, source) in _SOURCES.items():
            rows, size = [], 0
            after = f"{source} WHERE seq > ? ORDER BY seq LIMIT {_ROWS}"
            for seq, branch, text, tags, kind in connection.execute(
                after, (last(connection, name),)
            ):
                marks = json.loads(tags)
                words = " ".join([text, *marks, kind])
                rows.append((seq, words, " ".join([place_mark(branch), *map(tag_mark, marks)])))
                size += len(text)
                if size > _CHARS:
                    break
            add_words(connection, name, rows)
            is_more = is_more or bool(rows)
        return is_more

    def _add_vectors(self, connection: sqlite3.Connection, vectors: Vectors) -> None:
        """Make vectors of new records, outside of a transaction, and store them."""
        source = f"SELECT seq, {_SOURCE} FROM archival WHERE seq > ? ORDER BY seq LIMIT {_ROWS}"
        if self._is_outdated:
            self._database.write_index(vectors.discard)
            self._is_outdated = False
        try:
            until = time.monotonic() + _MAKING_S
            while time.monotonic() < until:
                rest = connection.execute(source, (vectors.last(connection),)).fetchall()
                if not (texts := dict(rest)):
                    break
                rows = vectors.made(texts)

                def store(
                    writer: sqlite3.Connection,
                    texts: dict[int, str] = texts,
                    rows: list[Row] = rows,
                ) -> bool:
                    ends = (min(texts), max(texts))
                    query = f"SELECT seq, {_SOURCE} FROM archival WHERE seq BETWEEN ? AND ?"
                    now = dict(writer.execute(query, ends).fetchall())
                    # A text that was erased meanwhile leaves no vector behind.
                    same = [row for row in rows if now.get(row[1]) == texts[row[1]]]
                    vectors.add(writer, same)
                    return bool(same)

                if not self._database.write_index(store):
                    break
            self.problem = ""
        except BranchedMemoryError:
            raise
        except TaskWeaverError as error:
            self.problem = str(error)

    @property
    def has_vectors(self) -> bool:
        """Whether searches compare vectors, too."""
        return self._vectors is not None and not self.problem

    def near(self, connection: sqlite3.Connection, query: str) -> Iterator[int]:
        """Yield the numbers of the records whose vectors are near a query, the nearest first."""
        if self._vectors is None or self.problem:
            return
        try:
            yield from self._vectors.nearest(connection, query)
        except ValueError:  # the model makes vectors of another dimension now
            self._is_outdated = True
        except TaskWeaverError as error:
            self.problem = str(error)


def last(connection: sqlite3.Connection, name: str) -> int:
    """Return the number of the newest row in a table of words; 0 for none."""
    row = connection.execute(f"SELECT rowid FROM {name} ORDER BY rowid DESC LIMIT 1").fetchone()
    return int(row[0]) if row else 0


def is_behind(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether a table of words lacks the newest rows."""
    table, _ = _SOURCES[name]
    (newest,) = connection.execute(f"SELECT coalesce(max(seq), 0) FROM {table}").fetchone()
    return int(newest) > last(connection, name)


def place_mark(branch: int) -> str:
    """Return the term of the index for the branch of a row."""
    return f"b{branch}"


def tag_mark(tag: str) -> str:
    """Return the term of the index for a tag. Few tags share one."""
    return f"t{zlib.crc32(tag.encode()):x}"
