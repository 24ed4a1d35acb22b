"""Connections to a PostgreSQL database that are used again, up to a number."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.pq import TransactionStatus

from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.connecting import Connection, connect
from taskweaver.server.databases.statements import DatabaseLost

AWAY = "The database of the server does not answer."
"""Without the reason, which names hosts and users: clients without a token see this. The presence
of the server writes the reason that it meets at the same address to the log."""

_LONG_S = 1.0


class LentConnection:
    """A connection, for one use.

    Attributes:
        connection: The connection.
        is_committing: Whether the commit was sent, so that a change may have been made.
    """

    def __init__(self, pool: PostgresPool, connection: Connection) -> None:
        self._pool = pool
        self.connection = connection
        self.is_committing = False

    def connect_again(self, error: psycopg.OperationalError) -> None:
        """Connect where an error means that the connection was lost, else raise the error.

        Raises:
            DatabaseLost: If the database does not answer, or was closed here.
        """
        if not self.connection.closed:
            raise error
        self._pool.close_idle()  # what cut this one has cut those, most likely
        self.connection = self._pool.connected()


class PostgresPool:
    """Connections, made when they are needed. Close it; thread-safe."""

    def __init__(self, address: PostgresAddress, most: int) -> None:
        """Connect for the first time; at most `most` connections are used at a time.

        Raises:
            DatabaseLost: If the database does not answer, refuses the login, or is reached by a
                pooler.
        """
        self._address = address
        self._places = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._is_closed = False
        self._not_before = 0.0
        self._idle = [connect(address)]

    @contextmanager
    def lent(self) -> Iterator[LentConnection]:
        """Lend a connection.

        Raises:
            DatabaseLost: If there is none, and the database does not answer or was closed here.
        """
        with self._places:
            with self._lock:
                found = self._idle.pop() if self._idle else None
            one = LentConnection(self, found or self.connected())
            try:
                yield one
            finally:
                self._take_back(one.connection)

    def _take_back(self, connection: Connection) -> None:
        is_usable = connection.info.transaction_status is TransactionStatus.IDLE
        with self._lock:
            if is_usable and not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def connected(self) -> Connection:
        """Return a new connection; at most half of the time is spent on a host that is silent.

        Raises:
            DatabaseLost: If the database does not answer, or was closed here.
        """
        begun = time.monotonic()
        if self._is_closed or begun < self._not_before:
            raise DatabaseLost(AWAY, is_undone=True)
        try:
            return connect(self._address)
        except DatabaseLost as lost:
            now = time.monotonic()
            self._not_before = 2 * now - begun if now - begun > _LONG_S else 0.0
            raise DatabaseLost(AWAY, is_undone=True) from lost

    def close_idle(self) -> None:
        """Close the connections that are not lent."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close all connections, those that are lent when they come back; safe to call again."""
        self._is_closed = True
        self.close_idle()
