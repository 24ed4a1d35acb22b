"""Poolers between the server and PostgreSQL: told, whichever way they hide what is lost."""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_connection, socket
from urllib.parse import urlsplit

import pytest

from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.connecting import connect
from taskweaver.server.databases.statements import DatabaseLost

pytestmark = pytest.mark.postgres

_KEY = b"K" + struct.pack("!i", 12)


@contextmanager
def pooler(target: tuple[str, int]) -> Iterator[int]:
    """Give the port of a relay that tells clients a number of its own for their connection."""

    class Relay(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with create_connection(target) as behind:
                answers = threading.Thread(target=pass_on, args=[behind, self.request])
                answers.start()
                pass_on(self.request, behind)
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


def pass_on(source: socket, target: socket) -> None:
    """Pass on what comes, with another number of the process, until the end."""
    while received := source.recv(1 << 16):
        at = received.find(_KEY)
        if at >= 0:
            number = at + len(_KEY)
            received = received[:number] + b"\0\0\0\1" + received[number + 4 :]
        target.sendall(received)
    target.shutdown(1)


def test_a_pooler_is_named(database: PostgresAddress) -> None:
    parts = urlsplit(database.url)
    assert parts.hostname
    assert parts.port
    connect(database).close()
    with pooler((parts.hostname, parts.port)) as port:
        behind = PostgresAddress(
            database.url.replace(f":{parts.port}/", f":{port}/"), database.password
        )
        with pytest.raises(DatabaseLost, match=r"such as PgBouncer.*name PostgreSQL itself"):
            connect(behind)


def test_lost_options_of_a_connection_are_noticed(database: PostgresAddress) -> None:
    other = PostgresAddress(f"{database.url}?options=-c%20search_path%3Dpublic", database.password)
    with pytest.raises(DatabaseLost, match="such as PgBouncer"):
        connect(other)
