"""Poolers between the server and PostgreSQL: told, whichever way they hide what is lost."""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from socket import create_connection, socket
from urllib.parse import urlsplit

import pytest

from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.connecting import connect
from taskweaver.server.databases.statements import DatabaseLost

pytestmark = pytest.mark.postgres

_KEY = b"K" + struct.pack("!i", 12)


Change = Callable[[bytes], bytes]


@contextmanager
def pooler(target: tuple[str, int], ask: Change, answer: Change) -> Iterator[int]:
    """Give the port of a relay that changes what it passes on, to the database and back."""

    class Relay(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with create_connection(target) as behind:
                answers = threading.Thread(target=pass_on, args=[behind, self.request, answer])
                answers.start()
                pass_on(self.request, behind, ask)
                answers.join()

    class Relays(socketserver.ThreadingTCPServer):
        daemon_threads = False

    with Relays(("127.0.0.1", 0), Relay) as server:
        running = threading.Thread(target=server.serve_forever)
        running.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            running.join()


def pass_on(source: socket, target: socket, change: Change) -> None:
    """Pass on what comes, changed, until the end."""
    while received := source.recv(1 << 16):
        target.sendall(change(received))
    target.shutdown(1)


def unchanged(received: bytes) -> bytes:
    return received


def with_own_number(received: bytes) -> bytes:
    """Return an answer with another number of the process."""
    at = received.find(_KEY)
    number = at + len(_KEY)
    return received if at < 0 else received[:number] + b"\0\0\0\1" + received[number + 4 :]


def without_options(received: bytes) -> bytes:
    """Return a request whose options are no longer those of the server."""
    return received.replace(b"search_path=taskweaver", b"search_path=elsewhere1")


@pytest.mark.parametrize(
    ("ask", "answer"), [(unchanged, with_own_number), (without_options, unchanged)]
)
def test_a_pooler_is_named(database: PostgresAddress, ask: Change, answer: Change) -> None:
    parts = urlsplit(database.url)
    assert parts.hostname
    assert parts.port
    connect(database).close()
    with pooler((parts.hostname, parts.port), ask, answer) as port:
        behind = PostgresAddress(
            database.url.replace(f":{parts.port}/", f":{port}/"), database.password
        )
        with pytest.raises(DatabaseLost, match=r"such as PgBouncer.*name PostgreSQL itself"):
            connect(behind)


def test_options_of_an_address_are_kept(database: PostgresAddress) -> None:
    options = "-c%20search_path%3Dpublic%20-c%20statement_timeout%3D7s"
    own = PostgresAddress(f"{database.url}?options={options}", database.password)
    with closing(connect(own)) as connection:
        shown = "SELECT current_setting('statement_timeout'), current_setting('search_path')"
        assert connection.execute(shown).fetchone() == ("7s", "taskweaver")
