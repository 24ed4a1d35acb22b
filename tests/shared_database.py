"""Empty databases of a PostgreSQL server, as servers share them."""

from __future__ import annotations

import secrets
import socketserver
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from socket import SHUT_WR, create_connection, socket
from typing import Any
from urllib.parse import urlsplit

import psycopg
from postgres_server import PASSWORD, QUOTED
from psycopg.sql import SQL, Composed, Identifier

from taskweaver.server.databases.address import PostgresAddress

Change = Callable[[bytes], bytes]
_USERS = 0x5457_0001


@contextmanager
def empty_database(boss: str) -> Iterator[PostgresAddress]:
    """Give the address of a new database on the server of an address of its superuser."""
    name = f"shared_{secrets.token_hex(4)}"
    with closing(psycopg.connect(boss, autocommit=True)) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        try:
            url = boss.replace(f":{QUOTED}@", "@").rpartition("/")[0]
            yield PostgresAddress(f"{url}/{name}", PASSWORD)
        finally:
            connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@contextmanager
def no_new_connections(
    connection: psycopg.Connection[tuple[Any, ...]], address: PostgresAddress
) -> Iterator[None]:
    """Let a database take no new connections for a while, by a superuser's connection."""
    switch = SQL("ALTER DATABASE {} ALLOW_CONNECTIONS ").format(Identifier(name_of(address)))
    connection.execute(switch + SQL("false"))
    try:
        yield
    finally:
        connection.execute(switch + SQL("true"))


@contextmanager
def limited(address: PostgresAddress, count: int) -> Iterator[PostgresAddress]:
    """Give the address of a database for a role that may have some connections, and no more."""
    name = f"few_{secrets.token_hex(4)}"
    role = Identifier(name)

    def run(*statements: Composed) -> None:
        with psycopg.connect(address.url, password=address.password) as connection:
            for statement in statements:
                connection.execute(statement)

    made = SQL("CREATE ROLE {} LOGIN PASSWORD {} CONNECTION LIMIT {}")
    grant = SQL("GRANT CREATE ON DATABASE {} TO {}")
    run(
        made.format(role, address.password, count), grant.format(Identifier(name_of(address)), role)
    )
    try:
        url = urlsplit(address.url)
        own = url._replace(netloc=f"{name}@{url.hostname}:{url.port}")
        yield PostgresAddress(own.geturl(), address.password)
    finally:
        run(SQL("DROP OWNED BY {}").format(role), SQL("DROP ROLE {}").format(role))


@contextmanager
def outage(boss: str, address: PostgresAddress) -> Iterator[None]:
    """End all connections to a database, and let it take no new ones for a while."""
    end = (
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
        " WHERE datname = %s AND pid <> pg_backend_pid()"
    )
    with (
        closing(psycopg.connect(boss, autocommit=True)) as connection,
        no_new_connections(connection, address),
    ):
        connection.execute(end, [name_of(address)])
        yield


def name_of(address: PostgresAddress) -> str:
    return address.url.rpartition("/")[2]


def end_connections(address: PostgresAddress) -> int:
    """End all connections to a database, as its restart does; return their number."""
    with closing(psycopg.connect(address.url, password=address.password)) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return len(ended.fetchall())


@contextmanager
def locked_user(address: PostgresAddress, user: str) -> Iterator[Callable[[], int]]:
    """Hold the lock of a user's changes, as a server does that stands still.

    The function waits until somebody waits for the lock, and returns how many do.
    """
    key = [_USERS, zlib.crc32(user.encode()) % (1 << 31)]
    waiting = "SELECT count(*) FROM pg_locks WHERE classid = %s AND objid = %s AND NOT granted"
    with closing(
        psycopg.connect(address.url, password=address.password, autocommit=True)
    ) as connection:
        connection.execute("SELECT pg_advisory_lock(%s, %s)", key)

        def await_waiting() -> int:
            pause = threading.Event()
            while not (count := connection.execute(waiting, key).fetchone() or (0,))[0]:
                pause.wait(0.02)
            return int(count[0])

        yield await_waiting


@contextmanager
def relayed(database: PostgresAddress, ask: Change, answer: Change) -> Iterator[PostgresAddress]:
    """Give the address of a relay that changes what it passes on, to a database and back."""
    port = urlsplit(database.url).port
    assert port
    with relay(port, ask, answer) as own:
        url = database.url.replace(f":{port}/", f":{own}/")
        yield PostgresAddress(url, database.password)


@contextmanager
def relay(port: int, ask: Change, answer: Change) -> Iterator[int]:
    """Give the port of a relay to a port; what a change makes shorter ends its connection."""

    class Relay(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with create_connection(("127.0.0.1", port)) as behind:
                answers = threading.Thread(target=_pass_on, args=[behind, self.request, answer])
                answers.start()
                _pass_on(self.request, behind, ask)
                answers.join()

    class Relays(socketserver.ThreadingTCPServer):
        daemon_threads = False

    with Relays(("127.0.0.1", 0), Relay) as server:
        running = threading.Thread(target=server.serve_forever, args=[0.01])
        running.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            running.join()


def _pass_on(source: socket, target: socket, change: Change) -> None:
    """Pass on what comes, changed, until the end."""
    with suppress(ConnectionError):
        while received := source.recv(1 << 16):
            changed = change(received)
            target.sendall(changed)
            if len(changed) < len(received):
                break
    with suppress(OSError):
        target.shutdown(SHUT_WR)


class DatabaseLink:
    """A way to a database that can be cut: no answer comes through until the cut is over.

    `is_asked` is set as soon as something is asked meanwhile.
    """

    def __init__(self) -> None:
        self.is_asked = threading.Event()
        self._is_whole = threading.Event()
        self._is_whole.set()

    @contextmanager
    def to(self, database: PostgresAddress) -> Iterator[PostgresAddress]:
        """Give the address of a database behind it."""
        with relayed(database, self._ask, self._answer) as address:
            yield address

    @contextmanager
    def cut(self) -> Iterator[None]:
        self.is_asked.clear()
        self._is_whole.clear()
        try:
            yield
        finally:
            self._is_whole.set()

    def _ask(self, sent: bytes) -> bytes:
        if not self._is_whole.is_set():
            self.is_asked.set()
        return sent

    def _answer(self, received: bytes) -> bytes:
        self._is_whole.wait()
        return received
