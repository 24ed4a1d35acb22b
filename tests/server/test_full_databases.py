"""Connections to PostgreSQL: few of them are shared, and poolers are refused."""

from __future__ import annotations

import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from typing import TypeVar

import pytest
from patience import PATIENCE_S
from shared_database import end_connections, limited, relayed

from taskweaver.server.databases import postgresql
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.postgresql import PostgresDatabase, connect
from taskweaver.server.databases.statements import DatabaseLost

COUNT = 'SELECT count(*) FROM sessions WHERE "user" = ?'
INSERT = 'INSERT INTO sessions ("user", session, title, created_at) VALUES (?, ?, ?, ?)'
T = TypeVar("T")

pytestmark = pytest.mark.postgres


def once_free(ask: Callable[[], T]) -> T:
    """Ask until there is room: a connection ends shortly after it was closed."""
    while True:
        with suppress(DatabaseLost):
            return ask()


def test_requests_share_the_only_connection(
    database: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "_LONGEST_WAIT_S", PATIENCE_S)
    with (
        limited(database, 1) as few,
        closing(PostgresDatabase(few)) as one,
        ThreadPoolExecutor(7) as threads,
    ):
        with one.changing("ann") as run:
            run(INSERT, "ann", "s", "t", "now")
            waiting = [threads.submit(one.rows, COUNT, "ann") for _ in range(7)]
            assert not any(found.done() for found in waiting)
        assert [found.result(PATIENCE_S) for found in waiting] == [[(1,)]] * 7


def test_refused_connection_names_the_limit(
    database: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "_LONGEST_WAIT_S", 0.5)
    with limited(database, 1) as few, closing(PostgresDatabase(few)) as one, ExitStack() as change:
        full = pytest.raises(DatabaseLost, match=r"takes no further connection.*max_connections")
        once_free(lambda: change.enter_context(one.changing("ann")))
        with full as caught:
            one.rows(COUNT, "ann")
        assert (caught.value.status, caught.value.retry_after_s) == (503, 2)
        change.close()
        assert end_connections(database) == 1
        with closing(PostgresDatabase(few)) as other, ExitStack() as change:
            once_free(lambda: change.enter_context(other.changing("ann")))
            with full as caught:
                one.rows(COUNT, "ann")
            assert few.url not in str(caught.value)
        assert once_free(lambda: one.rows(COUNT, "ann")) == [(0,)]


_KEY = b"K" + struct.pack("!i", 12)


def with_own_number(received: bytes) -> bytes:
    """Return an answer with another number of the process."""
    at = received.find(_KEY)
    number = at + len(_KEY)
    return received if at < 0 else received[:number] + b"\0\0\0\1" + received[number + 4 :]


def without_options(received: bytes) -> bytes:
    """Return a request whose options are no longer those of the server."""
    return received.replace(b"search_path=taskweaver", b"search_path=elsewhere1")


@pytest.mark.parametrize(("ask", "answer"), [(without_options, bytes), (bytes, with_own_number)])
def test_pooler_is_refused(
    database: PostgresAddress, ask: Callable[[bytes], bytes], answer: Callable[[bytes], bytes]
) -> None:
    refused = pytest.raises(DatabaseLost, match=r"such as PgBouncer.*name PostgreSQL itself")
    with relayed(database, ask, answer) as behind, refused:
        connect(behind)


def test_options_of_an_address_are_kept(database: PostgresAddress) -> None:
    options = "-c%20search_path%3Dpublic%20-c%20statement_timeout%3D7s"
    own = PostgresAddress(f"{database.url}?options={options}", database.password)
    with closing(connect(own)) as connection:
        shown = "SELECT current_setting('statement_timeout'), current_setting('search_path')"
        assert connection.execute(shown).fetchone() == ("7s", "taskweaver")
