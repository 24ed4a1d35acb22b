"""The presence of a server among those that share a PostgreSQL database.

A server holds an advisory lock of its id on a connection of its own: the database frees it when the
server ends, however it ends. The same connection hears of changes that other servers make.
"""

from __future__ import annotations

import secrets
import selectors
import socket
import threading
from collections.abc import Callable

import psycopg

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.connecting import SCHEMA, Connection, connect
from taskweaver.server.databases.statements import DatabaseLost

_AGAIN_S = 0.5
_THREAD = "server-presence"


class ServerPresence:
    """Shows other servers that this one lives, and hears of their changes. Close it.

    Attributes:
        id: Id of this server, a number.
    """

    def __init__(self, address: PostgresAddress, log: TelemetryLogger) -> None:
        """Enter.

        Raises:
            DatabaseLost: If the database does not answer.
        """
        self.id = str(secrets.randbits(62))
        self._address = address
        self._log = log
        self._listeners: dict[str, Callable[[], None]] = {}
        self._has_lock = False
        self._is_closing = threading.Event()
        connection = connect(address)
        self._enter(connection)
        self._bell, self._ear = socket.socketpair()
        self._thread = threading.Thread(target=self._run, args=[connection], name=_THREAD)
        self._thread.start()

    def close(self) -> None:
        """Leave: open messages of this server count as cut from now on; safe to call again."""
        if self._is_closing.is_set():
            return
        self._is_closing.set()
        self._bell.send(b"x")
        self._thread.join()
        self._bell.close()
        self._ear.close()

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

    def _run(self, connection: Connection) -> None:
        while not self._is_closing.is_set():
            try:
                with connection:
                    self._hear(connection)
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
            for on_change in tuple(self._listeners.values()):  # they may have missed a change
                on_change()
            self._log.info("the connection for changes of other servers is there again")
            return connection
        return None

    def _hear(self, connection: Connection) -> None:
        """Pass on the changes of other servers until this one leaves or the connection is lost."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            selector.register(self._ear, selectors.EVENT_READ)
            while not self._is_closing.is_set():
                if not self._has_lock:
                    self._take_lock(connection)
                changed = {note.payload for note in connection.notifies(timeout=0)}
                for server, _, user in (payload.partition(" ") for payload in changed):
                    on_change = self._listeners.get(user)
                    if on_change is not None and server != self.id:
                        on_change()
                selector.select(None if self._has_lock else _AGAIN_S)
