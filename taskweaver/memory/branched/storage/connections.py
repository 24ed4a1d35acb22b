"""Connections to a memory file: one for each reading thread, and the transaction for writing."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from weakref import ref

from taskweaver.memory.branched.errors import StoreClosed
from taskweaver.memory.branched.types import EMPTY
from taskweaver.utils.sqlite_files import harden

_BUSY_TIMEOUT_S = 30.0
_FIRST_PAUSE_S, _SHORTEST_PAUSE_S, _AGED_S = 0.006, 0.001, 0.01
_PAGES_TO_CHECKPOINT = 400
"""A log that is written over from its start takes half the time to sync of one that grows."""
_A_LONG_WRITE_S, _LONGEST_PAUSE_S = 0.25, 0.002
"""Beyond the first, another process writes something large, and no turn is missed."""


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection that distrusts the file. SQLite itself waits for other processes."""
    connection = sqlite3.connect(
        path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        harden(connection)
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_write(path: Path, synchronous: str) -> sqlite3.Connection:
    """Open a connection for `transaction`, which waits for other processes instead of SQLite.

    Without a write-ahead log a commit waits for readers too, and SQLite itself waits.

    Args:
        path: The file.
        synchronous: SQLite's setting for how far a commit waits for the disk.
    """
    connection = connect(path)
    try:
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_TO_CHECKPOINT}")
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if mode == "wal":
            connection.execute("PRAGMA busy_timeout = 0")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, wait_s: float = _BUSY_TIMEOUT_S) -> Iterator[None]:
    """Write in a transaction, which is undone if the block raises."""
    try:
        _begin(connection, wait_s)
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _begin(connection: sqlite3.Connection, wait_s: float) -> None:
    """Begin to write, after other processes.

    SQLite does not say when a file is free. Its own way of waiting sleeps up to 100 ms at a time,
    while the others go on; waits that are short, random and shorter with time give each a turn.

    Raises:
        sqlite3.OperationalError: If another process writes for so long.
    """
    since = None
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            now = time.monotonic()
            since = now if since is None else since
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or now - since >= wait_s:
                raise
            waited_s = now - since
            pause_s = max(_SHORTEST_PAUSE_S, _FIRST_PAUSE_S / (1 + waited_s / _AGED_S))
            pause_s = _LONGEST_PAUSE_S if waited_s > _A_LONG_WRITE_S else random.random() * pause_s
            time.sleep(pause_s)  # noqa: TID251 - there is no event to wait on
        else:
            return


def finish(connection: sqlite3.Connection) -> None:
    """End a transaction that only read, unless SQLite itself has ended it after an error."""
    if connection.in_transaction:
        connection.execute("COMMIT")


_CACHE_KIB = 8000
"""Most memory for pages of each connection; a search reads from all over the file."""


class Readers:
    """The connections for reading of a file, to be closed."""

    def __init__(self, path: Path, first: sqlite3.Connection) -> None:
        """Begin with a connection, which is the first thread's that reads."""
        self._path = path
        self._first: sqlite3.Connection | None = first
        self._lock = threading.Lock()
        self._open: list[tuple[ref[threading.Thread], sqlite3.Connection]] = []
        self._local = threading.local()
        self._is_closed = False

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection.

        Raises:
            StoreClosed: If the memory was closed.
        """
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._add()
        if self._is_closed:
            raise StoreClosed(f"The memory {self._path} was closed.")
        return connection

    def connect(self) -> sqlite3.Connection:
        """Open a connection that any thread may use, and that the caller closes.

        Raises:
            sqlite3.Error: If the file cannot be opened.
        """
        return _set_to_read(connect(self._path))

    def _add(self) -> sqlite3.Connection:
        with self._lock:
            if self._is_closed:
                raise StoreClosed(f"The memory {self._path} was closed.")
            for thread, connection in self._open:
                if thread() is None:
                    connection.close()
            self._open = [pair for pair in self._open if pair[0]() is not None]
            first, self._first = self._first, None
            connection = self.connect() if first is None else _set_to_read(first)
            self._open.append((ref(threading.current_thread()), connection))
        self._local.connection = connection
        return connection

    def close(self) -> None:
        """Close every connection. Safe to call again."""
        with self._lock:
            self._is_closed = True
            for _, connection in self._open:
                connection.close()
            self._open.clear()
            if self._first is not None:
                self._first.close()


def _set_to_read(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


R = TypeVar("R")

_MOST_KNOWN = 8192
_CLOCK = ("clock", None)
SAID = "said"
"""The hashes of the last events that a branch itself has."""
CORE_SIZES = ("core sizes", None)
"""The most characters that the core memory in view of each branch has, by number."""


@dataclass(slots=True)
class Known:
    """Facts about the file that the writing connection knows to be still true.

    It is forgotten when another connection has committed, when a command was rolled back, and
    when a command says that it changes or removes rows.

    Attributes:
        rows: Facts by key; the key's first part names the kind of fact.
    """

    rows: dict[tuple[str, Any], Any] = field(default_factory=dict)
    _version: int | None = None

    def check(self, connection: sqlite3.Connection) -> None:
        """Forget everything if another connection has changed the file.

        Args:
            connection: The writing connection, inside a transaction.
        """
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version or len(self.rows) > _MOST_KNOWN:
            self.rows.clear()
            self._version = version

    def forked(self, child: int, parent: int | None) -> None:
        """Note a new branch: no event, and the core memory of the parent.

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


@dataclass(slots=True)
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

    connection: sqlite3.Connection
    now: float
    known: Known
    first: int = 0
    last: int = 0

    @property
    def seq(self) -> int:
        """The newest sequence number, written to the clock with the commit."""
        if not self.last and _CLOCK not in self.known.rows:
            row = self.connection.execute("SELECT seq FROM clock").fetchone()
            self.known.rows[_CLOCK] = int(row[0])
        return self.last or int(self.known.rows[_CLOCK])

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
        """Set the clock to a later sequence number. All smaller numbers were given out."""
        self.first = self.first or self.tick()
        self.last = seq
        self.set_clock()

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
