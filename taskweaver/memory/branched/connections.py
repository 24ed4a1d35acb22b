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
_MOST_WAIT_S = 0.0005


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
    _begin(connection)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _begin(connection: sqlite3.Connection) -> None:
    """Begin to write, after other processes.

    SQLite does not say when a file is free. Its own way of waiting sleeps up to 100 ms at a
    time, while the others go on; many short waits of random length give all of them a turn.
    """
    give_up_at = None
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if (error.sqlite_errorcode or 0) & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            now = time.monotonic()
            give_up_at = now + _BUSY_TIMEOUT_S if give_up_at is None else give_up_at
            if now >= give_up_at:
                raise
            time.sleep(random.random() * _MOST_WAIT_S)  # noqa: TID251 - SQLite has no event
        else:
            return


def finish(connection: sqlite3.Connection) -> None:
    """End a transaction that only read, unless SQLite itself has ended it after an error."""
    if connection.in_transaction:
        connection.execute("COMMIT")
