"""The index of a user's sessions, in a file and in a database that servers share."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import psycopg
import pytest
from patience import PATIENCE_S
from shared_database import end_connections, no_new_connections

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.agents.index import (
    AgentIndex,
    AgentIndexes,
    FileIndexes,
    IndexedMessage,
    SharedIndexes,
)
from taskweaver.server.databases import postgresql
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.postgresql import PostgresDatabase
from taskweaver.server.databases.statements import DatabaseLost
from taskweaver.server.errors import ServerError
from taskweaver.session.errors import EventsGone, EventsToCome

postgres = pytest.mark.postgres


def indexes_at(place: Path | PostgresAddress) -> AgentIndexes:
    return FileIndexes() if isinstance(place, Path) else SharedIndexes(place, TelemetryLogger())


def message(name: str, text: str = "why?") -> IndexedMessage:
    return IndexedMessage(name, "s", "main", "ask", text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ann"


@pytest.fixture(autouse=True)
def _servers_have_their_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge servers at once, though the database was just started."""
    monkeypatch.setattr(postgresql, "_SETTLED_S", 0.0)


@pytest.fixture
def two(database: PostgresAddress, folder: Path) -> Iterator[list[AgentIndex]]:
    """Give the index of a user at two servers."""
    with closing(indexes_at(database)) as one, closing(indexes_at(database)) as other:
        yield [server.of("ann", folder) for server in (one, other)]


def test_sessions_and_messages_are_kept(place: Path | PostgresAddress, folder: Path) -> None:
    odd = "a\0b \N{SNOWMAN} 'q' %s ?"
    with closing(indexes_at(place)) as indexes:
        index = indexes.of("ann", folder)
        index.add_session("s", "first")
        index.add_session("s", "again")
        index.rename_session("s", odd)
        index.rename_session("t", "new")
        index.add_message(message("m1", odd))
        index.add_message(message("m2"))
        with pytest.raises(ServerError):
            index.add_message(message("m2", "another"))
        index.update("m1", state="running", round_id="r")
        index.update("m1", state="finished", answer=odd, tokens=3, cost=0.5)
        index.update("m2", state="withdrawn")
        index.update("m3", state="finished")
    with closing(indexes_at(place)) as indexes:
        index = indexes.of("ann", folder)
        assert {one.session: one.title for one in index.sessions()} == {"s": odd, "t": "new"}
        first, second = index.messages("s")
        assert (first.id, first.text, first.answer) == ("m1", odd, odd)
        assert (first.tokens, first.cost, first.round_id) == (3, 0.5, "r")
        assert index.message("m2") == second
        assert index.messages(states=("withdrawn",)) == [second]
        assert index.message("m3") is None
        kinds = [one.kind for one in index.read(0, 100)]
        assert kinds[:4] == [*["session_created"] * 2, *["session_renamed"] * 2]
        states = ("queued", "queued", "running", "finished", "withdrawn")
        assert kinds[4:] == [f"message_{state}" for state in states]
        assert [one.number for one in index.read(0, 100)] == list(range(1, 10))
        index.remove_session("s")
        assert (index.messages(), len(index.sessions())) == ([], 1)


def test_changes_are_kept_up_to_a_number(
    place: Path | PostgresAddress, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskweaver.server.agents.index._MOST_CHANGES", 3)
    with closing(indexes_at(place)) as indexes:
        index = indexes.of("ann", folder)
        for number in range(1, 6):
            index.rename_session("s", str(number))
            assert index.last_change == number
        assert [one.number for one in index.read(2, 100)] == [3, 4, 5]
        with pytest.raises(EventsGone):
            index.read(1, 100)
        with pytest.raises(EventsToCome):
            index.read(6, 100)


def test_messages_that_the_end_of_a_server_cut_are_marked(
    place: Path | PostgresAddress, folder: Path
) -> None:
    with closing(indexes_at(place)) as indexes:
        index = indexes.of("ann", folder)
        for name in ("m1", "m2", "m3"):
            index.add_message(message(name))
        index.update("m1", state="running")
        index.update("m3", state="finished")
        assert [one.state for one in index.messages("s")] == ["running", "queued", "finished"]
    with closing(indexes_at(place)) as indexes:
        index = indexes.of("ann", folder)
        assert [one.state for one in index.messages("s")] == ["stopped", "stopped", "finished"]
        assert [one.kind for one in index.read(5, 100)] == ["message_stopped"] * 2


def test_a_file_of_the_first_version_is_read(folder: Path) -> None:
    folder.mkdir()
    with closing(sqlite3.connect(folder / "agent.sqlite")) as connection:
        connection.executescript(
            """
            CREATE TABLE sessions (
              session TEXT PRIMARY KEY, title TEXT NOT NULL, created_at TEXT NOT NULL
            ) STRICT;
            CREATE TABLE messages (
              id TEXT PRIMARY KEY, session TEXT NOT NULL, branch TEXT NOT NULL, kind TEXT NOT NULL,
              text TEXT NOT NULL, state TEXT NOT NULL, round_id TEXT NOT NULL, answer TEXT NOT NULL,
              tokens INTEGER NOT NULL, cost REAL, created_at TEXT NOT NULL
            ) STRICT;
            CREATE INDEX messages_of_sessions ON messages (session);
            CREATE TABLE changes (
              number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, data TEXT NOT NULL
            ) STRICT;
            INSERT INTO sessions VALUES ('s', 'title', '2026-01-01T00:00:00+00:00');
            INSERT INTO messages VALUES ('m', 's', 'main', 'ask', 'why?', 'running', 'r', '', 0,
              NULL, '2026-01-01T00:00:00+00:00');
            INSERT INTO changes VALUES (7, 'message_running', '{}');
            """
        )
    with closing(FileIndexes()) as indexes:
        index = indexes.of("ann", folder)
        assert [one.title for one in index.sessions()] == ["title"]
        assert [one.state for one in index.messages()] == ["stopped"]
        assert [one.number for one in index.read(6, 9)] == [7, 8]


@postgres
def test_open_messages_of_a_server_whose_presence_was_cut_are_left(
    two: list[AgentIndex], boss: str, database: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = two
    there.add_message(message("m"))
    assert here.messages(), "it has a connection"
    woken = threading.Event()
    here.listen(woken.set)
    with closing(psycopg.connect(boss, autocommit=True)) as connection:

        def state_while_cut() -> str:
            with no_new_connections(connection, database):
                cut = "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE objid = %s"
                key = int(there.server) % (1 << 32)
                assert connection.execute(cut, [key]).fetchall() == [(True,)]
                return here.messages()[0].state

        monkeypatch.setattr(postgresql, "_SETTLED_S", 2 * PATIENCE_S)
        assert state_while_cut() == "queued"
        first = time.monotonic()
        count = "SELECT count(*) FROM pg_locks WHERE objid = %s"
        while connection.execute(count, [int(there.server) % (1 << 32)]).fetchone() != (1,):
            pass
        there.rename_session("s", "title")
        assert woken.wait(PATIENCE_S)
        monkeypatch.setattr(postgresql, "_SETTLED_S", time.monotonic() - first)
        assert state_while_cut() == "queued", "it was there in between"


@postgres
def test_a_server_has_ended_when_its_lock_stays_free(
    database: PostgresAddress, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "_SETTLED_S", 2 * PATIENCE_S)
    with closing(indexes_at(database)) as server:
        server.of("ann", folder).add_message(message("m"))
    with closing(indexes_at(database)) as server:
        index = server.of("ann", folder)
        assert [one.state for one in index.messages()] == ["queued"]
        monkeypatch.setattr(postgresql, "_SETTLED_S", 0.0)
        assert [one.state for one in index.messages()] == ["stopped"]


@postgres
def test_a_listener_that_fails_ends_nothing(two: list[AgentIndex]) -> None:
    here, there = two
    called, woken = threading.Semaphore(0), threading.Event()

    def fail() -> None:
        called.release()
        raise RuntimeError

    here.listen(fail)
    there.rename_session("s", "one")
    assert called.acquire(timeout=PATIENCE_S)
    here.unlisten(fail)
    here.listen(woken.set)
    there.rename_session("s", "two")
    assert woken.wait(PATIENCE_S)


def test_an_index_that_cannot_be_used_is_closed(folder: Path) -> None:
    with closing(FileIndexes()) as indexes:
        indexes.of("ann", folder)
    with closing(sqlite3.connect(folder / "agent.sqlite")) as connection:
        connection.execute("DROP TABLE messages")
    with closing(FileIndexes()) as indexes:
        with pytest.raises(ServerError, match="no such table"):
            indexes.of("ann", folder)
        opened = [Path(item.path).name for item in psutil.Process().open_files()]
        assert "agent.sqlite" not in opened


@postgres
def test_no_reader_misses_a_change_of_many_writers(two: list[AgentIndex]) -> None:
    seen = [0]

    def write(name: int) -> None:
        for number in range(40):
            two[name % 2].rename_session(f"s{name}", str(number))

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(write, name) for name in range(4)]
        while len(seen) <= 160:
            seen += [one.number for one in two[0].read(seen[-1], 7)]
        for one in running:
            one.result()
    assert seen == list(range(161))


@postgres
def test_lost_connections_are_made_again(two: list[AgentIndex], database: PostgresAddress) -> None:
    here, there = two
    here.rename_session("s", "before")
    woken = threading.Event()
    here.listen(woken.set)
    assert end_connections(database) == 3  # two presences, and the one that was used
    there.rename_session("s", "after")  # a change begins on a new connection
    assert woken.wait(PATIENCE_S)
    assert [one.title for one in here.sessions()] == ["after"]
    assert [one.number for one in here.read(0, 9)] == [1, 2]


@postgres
def test_a_change_whose_connection_is_lost_is_undone(database: PostgresAddress) -> None:
    with closing(PostgresDatabase(database)) as one:
        insert = 'INSERT INTO sessions ("user", session, title, created_at) VALUES (?, ?, ?, ?)'

        def change() -> None:
            with one.changing("ann") as run:
                run(insert, "ann", "s", "t", "now")
                end_connections(database)
                run(insert, "ann", "t", "t", "now")

        with pytest.raises(DatabaseLost) as caught:
            change()
        assert (caught.value.status, caught.value.is_undone) == (503, True)
        assert one.rows("SELECT count(*) FROM sessions") == [(0,)]
        with one.changing("ann") as run:
            assert run(insert, "ann", "s", "t", "now").changed == 1


@postgres
def test_a_server_that_stands_still_holds_up_others_for_a_while(
    database: PostgresAddress, folder: Path
) -> None:
    short = PostgresAddress(f"{database.url}?options=-c%20lock_timeout%3D50ms", database.password)
    with (
        closing(PostgresDatabase(database)) as still,
        closing(indexes_at(short)) as server,
    ):
        index = server.of("ann", folder)
        bob = server.of("bob", folder)
        with still.changing("ann"), ThreadPoolExecutor(2) as pool:
            held_up = pool.submit(index.rename_session, "s", "title")
            # Another user waits until the change that is held up is refused, and no longer.
            pool.submit(bob.rename_session, "s", "title").result(PATIENCE_S)
            with pytest.raises(DatabaseLost, match=r"busy.*lock timeout") as caught:
                held_up.result(PATIENCE_S)
            assert (caught.value.is_undone, caught.value.retry_after_s) == (True, 2)
        index.rename_session("s", "title")
        assert [one.number for one in index.read(0, 9)] == [1]


@postgres
def test_databases_that_cannot_be_used_are_named(
    boss: str, database: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServerError, match="SERVER_DATABASE_PASSWORD"):
        PostgresAddress(boss)
    with pytest.raises(ServerError, match="holds sslpassword"):
        PostgresAddress(f"{database.url}?sslpassword=x")
    for text in ("mysql://x/y", "postgresql://[", "x"):
        with pytest.raises(ServerError, match="no address of a PostgreSQL"):
            PostgresAddress(text)
    host = database.url.rpartition("/")[0]
    with pytest.raises(ServerError, match=r"nowhere at 127\.0\.0\.1 cannot be reached") as caught:
        indexes_at(PostgresAddress(f"{host}/nowhere", database.password))
    assert database.password not in str(caught.value)
    with pytest.raises(ServerError, match="password"):
        indexes_at(PostgresAddress(database.url, "wrong password"))
    with pytest.raises(ServerError, match="cannot be reached"):
        indexes_at(PostgresAddress("postgresql://127.0.0.1:1/x"))
    closed = PostgresDatabase(database)
    closed.close()
    with pytest.raises(DatabaseLost):
        closed.rows("SELECT 1")
    with closing(psycopg.connect(database.url, password=database.password)) as connection:
        connection.execute("UPDATE taskweaver.version SET number = 99")
        connection.commit()
    with pytest.raises(ServerError, match="newer version"):
        PostgresDatabase(database)
