"""Connections to a memory file, and how a transaction begins and ends on one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taskweaver.memory.branched.writer import begin
from taskweaver.utils.sqlite_files import harden

_BUSY_TIMEOUT_S = 30.0


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


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write in a transaction, which is undone if the block raises."""
    begin(connection, _BUSY_TIMEOUT_S)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def finish(connection: sqlite3.Connection) -> None:
    """End a transaction that only read, unless SQLite itself has ended it after an error."""
    if connection.in_transaction:
        connection.execute("COMMIT")
