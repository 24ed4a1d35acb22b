"""The transaction that is open for writing, and the facts its connection need not read again."""

from __future__ import annotations

import sqlite3
from functools import cache
from typing import Any

from taskweaver.memory.branched.storage.changes import Change

_MOST_KNOWN = 8192


class Known:
    """Facts that the writing connection found in the file, while nothing can have changed them.

    It is forgotten when another connection has committed, when a command was rolled back, and
    when a command says that it changes or removes rows.

    Attributes:
        rows: Facts by key; the key's first part names the kind of fact.
    """

    __slots__ = ("_version", "rows")

    def __init__(self) -> None:
        self.rows: dict[tuple[str, Any], Any] = {}
        self._version: int | None = None

    def check(self, connection: sqlite3.Connection) -> None:
        """Forget everything unless the file is as this connection left it.

        Args:
            connection: The writing connection, inside a transaction.
        """
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version or len(self.rows) > _MOST_KNOWN:
            self.rows.clear()
            self._version = version

    def forget(self) -> None:
        """Forget everything."""
        self.rows.clear()


class Writer:
    """The one transaction that is open for writing.

    Attributes:
        connection: Its connection.
        now: Its time, in seconds since 1970.
        known: Facts that need not be read again. A command that changes or removes rows that were
            there before calls `known.forget`; one that adds rows need not.
        first: First sequence number it gave out; 0 for none.
        last: Last sequence number it gave out.
        changes: Changes that add no row; see `note`.
    """

    __slots__ = ("changes", "connection", "first", "known", "last", "now")

    def __init__(self, connection: sqlite3.Connection, now: float, known: Known) -> None:
        self.connection = connection
        self.now = now
        self.known = known
        self.first = 0
        self.last = 0
        self.changes: list[Change] = []

    def tick(self) -> int:
        """Return the next sequence number."""
        row = self.connection.execute("UPDATE clock SET seq = seq + 1 RETURNING seq").fetchone()
        self.last = int(row[0])
        self.first = self.first or self.last
        return self.last

    def advance(self, seq: int) -> None:
        """Set the clock to a later sequence number; those up to it were given out."""
        self.first = self.first or self.tick()
        self.connection.execute("UPDATE clock SET seq = ?", (seq,))
        self.last = seq

    def note(self, op: str, **facts: Any) -> None:
        """Note a change that adds no row, such as a seal, under a sequence number of its own."""
        self.changes.append(Change(self.tick(), self.now, op, facts))

    def insert(self, table: str, **values: object) -> int:
        """Add a row under the next sequence number, and return that."""
        seq = self.tick()
        self.connection.execute(_insertion(table, tuple(values)), (seq, *values.values()))
        return seq


@cache
def _insertion(table: str, names: tuple[str, ...]) -> str:
    columns = ", ".join(("seq", *names))
    marks = ", ".join("?" * (len(names) + 1))
    return f"INSERT INTO {table} ({columns}) VALUES ({marks})"
