"""A PostgreSQL server that takes no further connections: those that are there are shared."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

import pytest
from patience import PATIENCE_S
from shared_database import end_connections, limited

from taskweaver.server.databases import postgresql
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.postgresql import PostgresDatabase
from taskweaver.server.databases.statements import DatabaseLost

COUNT = 'SELECT count(*) FROM sessions WHERE "user" = ?'
INSERT = 'INSERT INTO sessions ("user", session, title, created_at) VALUES (?, ?, ?, ?)'

pytestmark = pytest.mark.postgres


@contextmanager
def begun(database: PostgresDatabase) -> Iterator[None]:
    """Begin a change once there is room: a connection ends shortly after it was closed."""
    with ExitStack() as change:
        while True:
            try:
                change.enter_context(database.changing("ann"))
                break
            except DatabaseLost:
                pass
        yield


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
    with limited(database, 1) as few, closing(PostgresDatabase(few)) as one:
        full = pytest.raises(DatabaseLost, match=r"takes no further connection.*max_connections")
        with begun(one), full as caught:
            one.rows(COUNT, "ann")
        assert (caught.value.status, caught.value.retry_after_s) == (503, 2)
        assert end_connections(database) == 1
        with closing(PostgresDatabase(few)) as other, begun(other):
            with full as caught:
                one.rows(COUNT, "ann")
            assert few.url not in str(caught.value)
        while True:  # the connection of the other ends shortly after it is closed
            try:
                assert one.rows(COUNT, "ann") == [(0,)]
                break
            except DatabaseLost:
                pass
