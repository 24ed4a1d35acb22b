"""A PostgreSQL server that takes no further connections: those that are there are shared."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest
from patience import PATIENCE_S
from shared_database import end_connections, limited

from taskweaver.server.databases import pool
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.connecting import Connection, connect
from taskweaver.server.databases.postgresql import PostgresDatabase
from taskweaver.server.databases.statements import DatabaseLost

COUNT = 'SELECT count(*) FROM sessions WHERE "user" = ?'
INSERT = 'INSERT INTO sessions ("user", session, title, created_at) VALUES (?, ?, ?, ?)'

pytestmark = pytest.mark.postgres


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Count refused connections; those who wait for one in use have time."""
    monkeypatch.setattr(pool, "_IN_USE_S", PATIENCE_S)
    refusals = threading.Semaphore(0)

    def connecting(address: PostgresAddress) -> Connection:
        try:
            return connect(address)
        except DatabaseLost:
            refusals.release()
            raise

    monkeypatch.setattr(pool, "connect", connecting)
    return refusals


@pytest.mark.parametrize("long_s", [PATIENCE_S, 0.0], ids=["soon", "late"])
def test_requests_wait_for_a_connection_that_is_in_use(
    database: PostgresAddress,
    refused: threading.Semaphore,
    monkeypatch: pytest.MonkeyPatch,
    long_s: float,
) -> None:
    monkeypatch.setattr(pool, "_LONG_S", long_s)
    with (
        limited(database, 1) as few,
        closing(PostgresDatabase(few)) as one,
        ThreadPoolExecutor(7) as threads,
    ):
        with one.changing("ann") as run:
            run(INSERT, "ann", "s", "t", "now")
            waiting = [threads.submit(one.rows, COUNT, "ann") for _ in range(7)]
            for _ in waiting:
                assert refused.acquire(timeout=PATIENCE_S)
            assert not any(found.done() for found in waiting)
        assert [found.result(PATIENCE_S) for found in waiting] == [[(1,)]] * 7


def test_who_waits_gets_a_connection_that_was_lost_and_made_again(
    database: PostgresAddress, refused: threading.Semaphore
) -> None:
    with (
        limited(database, 1) as few,
        closing(pool.PostgresPool(few, 2)) as connections,
        ThreadPoolExecutor(1) as threads,
    ):
        with connections.lent() as one:
            waiting = threads.submit(_answer_of, connections)
            assert refused.acquire(timeout=PATIENCE_S)
            assert end_connections(database) == 1
            with pytest.raises(psycopg.OperationalError) as lost:
                one.connection.execute("SELECT 1")
            one.connect_again(lost.value)
            assert one.connection.execute("SELECT 1").fetchone() == (1,)
            assert not waiting.done()
        assert waiting.result(PATIENCE_S) == (2,)


def test_nobody_waits_for_connections_that_were_closed(
    database: PostgresAddress, refused: threading.Semaphore
) -> None:
    with (
        limited(database, 1) as few,
        closing(pool.PostgresPool(few, 2)) as connections,
        ThreadPoolExecutor(1) as threads,
        connections.lent(),
    ):
        waiting = threads.submit(_answer_of, connections)
        assert refused.acquire(timeout=PATIENCE_S)
        connections.close()
        with pytest.raises(DatabaseLost):
            waiting.result(PATIENCE_S)


def _answer_of(connections: pool.PostgresPool) -> tuple[Any, ...] | None:
    with connections.lent() as one:
        return one.connection.execute("SELECT 2").fetchone()


def test_without_a_connection_of_its_own_the_reason_is_told(
    database: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_IN_USE_S", 0.01)
    with limited(database, 1) as few, closing(PostgresDatabase(few)) as one:
        full = pytest.raises(DatabaseLost, match=r"takes no further connection.*max_connections")
        with one.changing("ann"), full as caught:
            one.rows(COUNT, "ann")
        assert (caught.value.status, caught.value.retry_after_s) == (503, 2)
        monkeypatch.setattr(pool, "_IN_USE_S", PATIENCE_S)
        assert end_connections(database) == 1
        with closing(PostgresDatabase(few)) as other:
            with full as caught:  # it has none, and waits for none
                one.rows(COUNT, "ann")
            assert few.url not in str(caught.value)
            assert other.rows(COUNT, "ann") == [(0,)]
        assert one.rows(COUNT, "ann") == [(0,)]
