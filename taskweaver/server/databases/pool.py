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

_FULL = (
    "The database of the server takes no further connection. Let PostgreSQL allow more"
    " (max_connections, or CONNECTION LIMIT of a role), or run fewer servers."
)
# PostgreSQL, in its own words, and PgBouncer: the client library has no code for this.
_FULL_SIGNS = ("too many", "connection slots are reserved", "no more connections allowed")
_LONG_S = 1.0
_IN_USE_S = 5.0
"""Most time for which a connection in use is waited for where no further one can be made."""


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
        self._pool.take_back(self.connection)
        self._pool.close_idle()  # what cut this one has cut those, most likely
        self.connection = self._pool.take_new()


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
        self._changed = threading.Condition()
        self._is_closed = False
        self._not_before = 0.0
        self._in_use = set[Connection]()
        self._idle = [connect(address)]

    @contextmanager
    def lent(self) -> Iterator[LentConnection]:
        """Lend a connection.

        Raises:
            DatabaseLost: If there is none, and the database does not answer or was closed here.
        """
        with self._places:
            one = LentConnection(self, self.take())
            try:
                yield one
            finally:
                self.take_back(one.connection)

    def take(self) -> Connection:
        """Return a connection for use: an idle one, else as `take_new`."""
        with self._changed:
            if self._idle:
                return self._used(self._idle.pop())
        return self.take_new()

    def take_new(self) -> Connection:
        """Return a new connection for use.

        Where the database refuses it, as it allows no more, one comes that is in use until then.

        Raises:
            DatabaseLost: If there is none, and none comes back soon.
        """
        begun = time.monotonic()
        try:
            made = self._connected()
        except DatabaseLost:
            with self._changed:
                if begun >= self._not_before:  # else the host is silent, also to those in use
                    self._changed.wait_for(self._is_decided, _IN_USE_S)
                    if self._idle:
                        return self._used(self._idle.pop())
            raise
        with self._changed:
            return self._used(made)

    def _used(self, connection: Connection) -> Connection:
        self._in_use.add(connection)
        return connection

    def _is_decided(self) -> bool:
        return bool(self._idle) or self._is_closed or not self._in_use

    def take_back(self, connection: Connection) -> None:
        """Take back a connection that was used; it is closed unless it can be used again."""
        is_usable = connection.info.transaction_status is TransactionStatus.IDLE
        with self._changed:
            self._in_use.discard(connection)
            is_kept = is_usable and not self._is_closed
            if is_kept:
                self._idle.append(connection)
            self._changed.notify_all()
        if not is_kept:
            connection.close()

    def _connected(self) -> Connection:
        """Return a new connection; at most half of the time is spent on a host that is silent."""
        begun = time.monotonic()
        if self._is_closed or begun < self._not_before:
            raise DatabaseLost(AWAY, is_undone=True)
        try:
            return connect(self._address)
        except DatabaseLost as lost:
            now = time.monotonic()
            self._not_before = 2 * now - begun if now - begun > _LONG_S else 0.0
            is_full = any(sign in lost.detail for sign in _FULL_SIGNS)
            raise DatabaseLost(_FULL if is_full else AWAY, is_undone=True) from lost

    def close_idle(self) -> None:
        """Close the connections that are not lent."""
        with self._changed:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close all connections, those that are lent when they come back; safe to call again."""
        self._is_closed = True
        self.close_idle()
