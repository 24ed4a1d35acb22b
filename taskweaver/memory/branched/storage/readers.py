"""Connections for reading: one per thread, closed after its thread or with the file."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from weakref import ref

from taskweaver.memory.branched.errors import StoreClosed
from taskweaver.memory.branched.storage.connections import connect

_CACHE_KIB = 8000
"""Most memory for pages of each connection; a search reads from all over the file."""


class Readers:
    """The connections for reading of a file. Close it when done."""

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
        """Close every connection; safe to call again."""
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
