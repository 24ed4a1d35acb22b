"""The transaction that is open for writing, and the facts its connection need not read again."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from taskweaver.memory.branched.storage.schema import index_records
from taskweaver.memory.branched.types import EMPTY

R = TypeVar("R")

_MOST_KNOWN = 8192
_CLOCK = ("clock", None)
SAID = "said"
"""The hashes of the last events that a branch itself has."""
CORE_SIZES = ("core sizes", None)
"""The most characters that the core memory in view of each branch has, by number."""


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

    def forked(self, child: int, parent: int | None) -> None:
        """Note a branch that was made: it has no event, and the core memory that it starts from.

        Args:
            child: Its number.
            parent: Number of the branch whose present view it starts from; `EMPTY` for a root,
                None for a branch that starts from the past.
        """
        self.rows[SAID, child] = deque()
        sizes = self.rows.setdefault(CORE_SIZES, {})
        if parent == EMPTY:
            sizes[child] = 0
        elif parent in sizes:
            sizes[child] = sizes[parent]

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
        last: Last sequence number it gave out; 0 for none.
    """

    __slots__ = ("_unindexed", "connection", "first", "known", "last", "now")

    def __init__(self, connection: sqlite3.Connection, now: float, known: Known) -> None:
        self.connection = connection
        self.now = now
        self.known = known
        self.first = 0
        self.last = 0
        self._unindexed: list[int] = []

    @property
    def seq(self) -> int:
        """The newest sequence number; the clock in the file has it after the commit."""
        if not self.last and _CLOCK not in self.known.rows:
            row = self.connection.execute("SELECT seq FROM clock").fetchone()
            self.known.rows[_CLOCK] = int(row[0])
        return self.last or int(self.known.rows[_CLOCK])

    def run(self, action: Callable[[Writer], R]) -> R:
        """Run a command; the records it added are in the full-text index afterwards."""
        self._unindexed.clear()
        result = action(self)
        self.index_added()
        return result

    def index_added(self) -> None:
        """Add the records of the command so far to the full-text index, for a search in it."""
        if self._unindexed:
            ends = self._unindexed[0], self._unindexed[-1]
            index_records(self.connection, "seq BETWEEN ? AND ?", *ends)
            self._unindexed.clear()

    def set_clock(self) -> None:
        """Write the clock, once all sequence numbers are given out."""
        if self.last:
            self.connection.execute("UPDATE clock SET seq = ?", (self.last,))
            self.known.rows[_CLOCK] = self.last

    def tick(self) -> int:
        """Return the next sequence number."""
        self.last = self.seq + 1
        self.first = self.first or self.last
        return self.last

    def advance(self, seq: int) -> None:
        """Set the clock to a later sequence number; those up to it were given out."""
        self.first = self.first or self.tick()
        self.last = seq
        self.set_clock()

    def index(self, seq: int) -> None:
        """Have a new record added to the full-text index at the end of the command."""
        self._unindexed.append(seq)

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
