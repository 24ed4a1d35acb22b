"""A PostgreSQL server that takes no further connections: those that are there are shared."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from shared_database import end_connections, limited

from taskweaver.server.databases import pool
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.postgresql import PostgresDatabase
from taskweaver.server.databases.statements import DatabaseLost

LIMIT_S = 60.0
COUNT = 'SELECT count(*) FROM sessions WHERE "user" = ?'
INSERT = 'INSERT INTO sessions ("user", session, title, created_at) VALUES (?, ?, ?, ?)'

pytestmark = pytest.mark.postgres


def test_requests_wait_for_a_connection_that_is_in_use(
    database: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_IN_USE_S", LIMIT_S)
    is_waiting = threading.Semaphore(0)
    is_decided = pool.PostgresPool._is_decided

    def decided(self: pool.PostgresPool) -> bool:
        is_waiting.release()
        return is_decided(self)

    monkeypatch.setattr(pool.PostgresPool, "_is_decided", decided)
    with (
        limited(database, 1) as few,
        closing(PostgresDatabase(few)) as one,
        ThreadPoolExecutor(7) as threads,
    ):
        with one.changing("ann") as run:
            run(INSERT, "ann", "s", "t", "now")
            waiting = [threads.submit(one.rows, COUNT, "ann") for _ in range(7)]
            for _ in waiting:
                assert is_waiting.acquire(timeout=LIMIT_S)
            assert not any(found.done() for found in waiting)
        assert [found.result(LIMIT_S) for found in waiting] == [[(1,)]] * 7


def test_without_a_connection_of_its_own_the_reason_is_told(
    database: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_IN_USE_S", 0.01)
    with limited(database, 1) as few, closing(PostgresDatabase(few)) as one:
        full = pytest.raises(DatabaseLost, match=r"takes no further connection.*max_connections")
        with one.changing("ann"), full as caught:
            one.rows(COUNT, "ann")
        assert (caught.value.status, caught.value.retry_after_s) == (503, 2)
        monkeypatch.setattr(pool, "_IN_USE_S", LIMIT_S)
        assert end_connections(database) == 1
        with closing(PostgresDatabase(few)) as other:
            with full as caught:  # it has none, and waits for none
                one.rows(COUNT, "ann")
            assert few.url not in str(caught.value)
            assert other.rows(COUNT, "ann") == [(0,)]
        assert one.rows(COUNT, "ann") == [(0,)]
