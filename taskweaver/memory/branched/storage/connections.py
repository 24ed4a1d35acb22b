"""Connections to a memory file, and how a transaction begins and ends on one."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taskweaver.utils.sqlite_files import harden

_BUSY_TIMEOUT_S = 30.0
_FIRST_PAUSE_S, _SHORTEST_PAUSE_S, _AGED_S = 0.006, 0.001, 0.01
_PAGES_TO_CHECKPOINT = 400
"""A log that is written over from its start takes half the time to sync of one that grows."""
_A_LONG_WRITE_S, _LONGEST_PAUSE_S = 0.25, 0.002
"""Beyond the first, another process writes something large, and no turn is missed."""


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection that distrusts the file; SQLite itself waits for other processes."""
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
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write in a transaction, which is undone if the block raises."""
    try:
        _begin(connection)
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _begin(connection: sqlite3.Connection) -> None:
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
            if not is_busy or now - since >= _BUSY_TIMEOUT_S:
                raise
            time.sleep(_pause(now - since))  # noqa: TID251 - there is no event to wait on
        else:
            return


def _pause(waited_s: float) -> float:
    """Return how long to wait before the next try, in seconds."""
    if waited_s > _A_LONG_WRITE_S:
        return _LONGEST_PAUSE_S
    return random.random() * max(_SHORTEST_PAUSE_S, _FIRST_PAUSE_S / (1 + waited_s / _AGED_S))


def finish(connection: sqlite3.Connection) -> None:
    """End a transaction that only read, unless SQLite itself has ended it after an error."""
    if connection.in_transaction:
        connection.execute("COMMIT")
