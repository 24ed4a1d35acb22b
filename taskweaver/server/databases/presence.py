"""The presence of a server among those that share a PostgreSQL database.

A server holds an advisory lock of its id on a connection of its own: the database frees it when the
server ends, however it ends. A server whose connection was cut takes its lock again on a new one,
and tells the others. The same connection gets the notifications of changes that they make.
"""

from __future__ import annotations

import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

import psycopg

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.postgresql import SCHEMA, Connection, connect
from taskweaver.server.databases.statements import DatabaseLost, ServerDatabase

_AGAIN_S = 0.5
_SETTLED_S = 6.0
"""Time for which a lock must be free until its server counts as ended: longer than one that lives
needs to connect again."""
_FREE = "SELECT id::text FROM unnest(?::bigint[]) AS id WHERE pg_try_advisory_xact_lock_shared(id)"
_THREAD = "server-presence"


class ServerPresence:
    """Shows other servers that this one lives, and notices their changes and their end. Close it.

    Attributes:
        id: Id of this server, a number.
        is_shared: True.
    """

    is_shared = True

    def __init__(self, address: PostgresAddress, log: TelemetryLogger) -> None:
        """Enter.

        Raises:
            DatabaseLost: If the database does not answer.
        """
        self.id = str(secrets.randbits(62))
        self._address = address
        self._log = log
        self._listeners: dict[str, Callable[[], None]] = {}
        self._free_since: dict[str, float] = {}
        self._has_lock = False
        self._is_closing = threading.Event()
        with ExitStack() as opened:
            connection = opened.enter_context(closing(connect(address)))
            self._enter(connection)
            self._closing_sent, self._closing_received = socket.socketpair()
            opened.callback(self._close_sockets)
            self._thread = threading.Thread(target=self._run, args=[connection], name=_THREAD)
            self._thread.start()
            opened.pop_all()

    def close(self) -> None:
        """Leave: open messages of this server count as cut from now on; safe to call again."""
        if self._is_closing.is_set():
            return
        self._is_closing.set()
        self._closing_sent.send(b"x")
        self._thread.join()
        self._close_sockets()

    def _close_sockets(self) -> None:
        self._closing_sent.close()
        self._closing_received.close()

    def ended(self, database: ServerDatabase, servers: Sequence[str]) -> list[str]:
        """Return those of some other servers that have ended: their locks stay free.

        The first call that finds a lock free remembers when; a later one returns its server.

        Args:
            database: A connection to the database that they share.
            servers: Their ids.
        """
        free = {server for (server,) in database.rows(_FREE, [int(server) for server in servers])}
        now = time.monotonic()
        for server in servers:
            if server in free:
                self._free_since.setdefault(server, now)
            else:
                self._free_since.pop(server, None)
        return sorted(one for one in free if now - self._free_since.get(one, now) >= _SETTLED_S)

    def listen(self, user: str, on_change: Callable[[], None]) -> None:
        """Call a function when another server may have changed the index of a user."""
        self._listeners[user] = on_change

    def unlisten(self, user: str) -> None:
        """Call the function of a user no longer."""
        self._listeners.pop(user, None)

    def _enter(self, connection: Connection) -> None:
        try:
            connection.execute(f"LISTEN {SCHEMA}".encode())
            self._take_lock(connection)
        except BaseException:
            connection.close()
            raise

    def _take_lock(self, connection: Connection) -> None:
        # After a lost connection the database may hold the lock for the one before, for a while.
        taken = connection.execute("SELECT pg_try_advisory_lock(%s)", [int(self.id)]).fetchone()
        self._has_lock = taken == (True,)
        if self._has_lock:
            connection.execute("SELECT pg_notify(%s, %s)", [SCHEMA, self.id])

    def _run(self, connection: Connection) -> None:
        while not self._is_closing.is_set():
            try:
                with connection:
                    self._pass_on(connection)
            except (psycopg.Error, OSError) as error:
                self._log.warning(f"the connection for changes of other servers is lost: {error}")
                connection = self._entered_again() or connection
        connection.close()

    def _entered_again(self) -> Connection | None:
        """Return a new connection; None if the server ends before there is one."""
        reason = ""
        while not self._is_closing.is_set():
            try:
                connection = connect(self._address)
                self._enter(connection)
            except (psycopg.Error, DatabaseLost) as error:
                if str(error) != reason:
                    reason = str(error)
                    self._log.warning(reason)
                self._is_closing.wait(_AGAIN_S)
                continue
            self._free_since.clear()  # servers may have told that they are there again
            for user in tuple(self._listeners):  # they may have missed a change
                self._call(user)
            self._log.info("the connection for changes of other servers is there again")
            return connection
        return None

    def _call(self, user: str) -> None:
        on_change = self._listeners.get(user)
        if on_change is None:
            return
        try:
            on_change()
        except Exception:  # noqa: BLE001 - one that fails must not end the presence
            self._log.exception("a change of another server was not passed on to a reader")

    def _pass_on(self, connection: Connection) -> None:
        """Pass on the changes of other servers until this one leaves or the connection is lost."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            selector.register(self._closing_received, selectors.EVENT_READ)
            while not self._is_closing.is_set():
                if not self._has_lock:
                    self._take_lock(connection)
                changed = {note.payload for note in connection.notifies(timeout=0)}
                for server, _, user in (payload.partition(" ") for payload in changed):
                    self._free_since.pop(server, None)
                    if server != self.id:
                        self._call(user)
                selector.select(None if self._has_lock else _AGAIN_S)
