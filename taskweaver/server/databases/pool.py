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
"""Longest wait for a connection in use, where a further one is refused."""


class LentConnection:
    """A connection, for one use.

    Attributes:
        connection: The connection.
        is_committing: Whether the commit was sent, so that a change may have been made.
    """

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool
        self.connection = pool.take(self)
        self.is_committing = False

    def connect_again(self, error: psycopg.OperationalError) -> None:
        """Connect where an error means that the connection was lost, else raise the error.

        Raises:
            DatabaseLost: If the database does not answer, or was closed here.
        """
        if not self.connection.closed:
            raise error
        self._pool.close_idle()  # what cut this one has cut those, most likely
        self.connection = self._pool.take_new(self)


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
        self._busy = set[LentConnection]()
        self._idle = [connect(address)]

    @contextmanager
    def lent(self) -> Iterator[LentConnection]:
        """Lend a connection.

        Raises:
            DatabaseLost: If there is none, and the database does not answer or was closed here.
        """
        with self._places:
            one = LentConnection(self)
            try:
                yield one
            finally:
                self._take_back(one)

    def take(self, one: LentConnection) -> Connection:
        """Return a connection for a use: an idle one, else as `take_new`."""
        return self._idle_one(one, 0.0) or self.take_new(one)

    def take_new(self, one: LentConnection) -> Connection:
        """Return a new connection for a use; when it is refused, wait for one that is in use.

        Raises:
            DatabaseLost: If there is none, and none is given back soon.
        """
        try:
            return self._new_one(one)
        except DatabaseLost:
            if time.monotonic() < self._not_before:  # the host is silent, also to those in use
                raise
        return self._idle_one(one, _IN_USE_S) or self._new_one(one)

    def _new_one(self, one: LentConnection) -> Connection:
        with self._changed:
            self._busy.add(one)
        try:
            return self._connected()
        except BaseException:
            self._end_use(one)
            raise

    def _idle_one(self, one: LentConnection, longest_s: float) -> Connection | None:
        """Return an idle connection, waiting for one to be given back; None if there is none."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._idle or self._is_closed or not self._busy, longest_s
            )
            if not self._idle:
                return None
            self._busy.add(one)
            return self._idle.pop()

    def _end_use(self, one: LentConnection) -> None:
        with self._changed:
            self._busy.discard(one)
            self._changed.notify_all()

    def _take_back(self, one: LentConnection) -> None:
        """Take a connection back after its use; it is closed unless it can be used again."""
        is_usable = one.connection.info.transaction_status is TransactionStatus.IDLE
        with self._changed:
            is_kept = is_usable and not self._is_closed
            if is_kept:
                self._idle.append(one.connection)
            self._end_use(one)
        if not is_kept:
            one.connection.close()

    def _connected(self) -> Connection:
        """Return a new connection; at most half of the time is spent on a host that is silent."""
        begun = time.monotonic()
        if self._is_closed or begun < self._not_before:
            raise DatabaseLost(AWAY, is_undone=True)
        try:
            return connect(self._address)
        except DatabaseLost as lost:
            now = time.monotonic()
            is_full = any(sign in lost.detail for sign in _FULL_SIGNS)
            is_silent = now - begun > _LONG_S and not is_full
            self._not_before = 2 * now - begun if is_silent else 0.0
            raise DatabaseLost(_FULL if is_full else AWAY, is_undone=True) from lost

    def close_idle(self) -> None:
        """Close the connections that are not lent."""
        with self._changed:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close all connections, those that are lent when they come back; safe to call again."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self.close_idle()
