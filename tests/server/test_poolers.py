"""Poolers between the server and PostgreSQL: told, whichever way they hide what is lost."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from socket import create_connection
from urllib.parse import urlsplit

import psycopg
import pytest
from ports import free_port
from postgres_server import PASSWORD
from shared_database import name_of, relayed

from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.connecting import _KEEPALIVES, _LIMITS_OF_TIME, connect
from taskweaver.server.databases.statements import DatabaseLost

pytestmark = pytest.mark.postgres

_KEY = b"K" + struct.pack("!i", 12)


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


REFUSED = r"such as PgBouncer.*name PostgreSQL itself"


def test_a_front_end_that_leaves_out_options_is_refused(database: PostgresAddress) -> None:
    with (
        relayed(database, without_options, unchanged) as behind,
        pytest.raises(DatabaseLost, match=REFUSED),
    ):
        connect(behind)


def test_a_front_end_that_hides_the_numbers_of_processes_is_used(
    database: PostgresAddress,
) -> None:
    with relayed(database, unchanged, with_own_number) as behind, closing(connect(behind)) as one:
        assert one.info.backend_pid == 1
        held = (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        assert one.execute(held).fetchone() == (0,)
        assert one.execute("SELECT * FROM pg_listening_channels()").fetchall() == []


def test_options_of_an_address_are_kept(database: PostgresAddress) -> None:
    options = "-c%20search_path%3Dpublic%20-c%20statement_timeout%3D7s"
    own = PostgresAddress(f"{database.url}?options={options}", database.password)
    with closing(connect(own)) as connection:
        shown = "SELECT current_setting('statement_timeout'), current_setting('search_path')"
        assert connection.execute(shown).fetchone() == ("7s", "taskweaver")


@contextmanager
def pgbouncer(database: PostgresAddress, mode: str, *more: str) -> Iterator[PostgresAddress]:
    """Give the address of a database behind PgBouncer, which leaves out the options.

    The test is skipped where it is not installed, unless ``POSTGRES_REQUIRED`` is set.
    """
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        problem = "PgBouncer is not installed (Debian: apt install pgbouncer)"
        (pytest.fail if os.environ.get("POSTGRES_REQUIRED") else pytest.skip)(problem)
    parts, port = urlsplit(database.url), free_port()
    lines = [
        "[databases]",
        f"* = host=127.0.0.1 port={parts.port} user={parts.username} password='{PASSWORD}'",
        "[pgbouncer]",
        f"pool_mode = {mode}",
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any",
        "ignore_startup_parameters = options",
        *more,
    ]
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".ini") as settings:
        settings.write("\n".join(lines))
        settings.flush()
        if user is not None:
            shutil.chown(settings.name, user)
        with subprocess.Popen(
            [program, "--quiet", settings.name], user=user, group=user, stderr=subprocess.DEVNULL
        ) as process:
            try:
                pause = threading.Event()
                while not is_open(port):
                    assert process.poll() is None
                    pause.wait(0.02)
                yield PostgresAddress(database.url.replace(f":{parts.port}/", f":{port}/"))
            finally:
                process.terminate()


def is_open(port: int) -> bool:
    try:
        create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


def with_settings(database: PostgresAddress, settings: dict[str, str]) -> None:
    """Let a database have settings of its own."""
    with closing(psycopg.connect(database.url, password=PASSWORD, autocommit=True)) as one:
        for name, value in settings.items():
            statement = f"ALTER DATABASE {name_of(database)} SET {name} = '{value}'"
            one.execute(statement.encode())


ALL = {"search_path": "taskweaver"} | _LIMITS_OF_TIME | _KEEPALIVES


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_a_pooler_is_used_where_it_keeps_sessions_apart(
    database: PostgresAddress, mode: str
) -> None:
    with_settings(database, ALL)
    with pgbouncer(database, mode) as behind:
        if mode == "session":
            connect(behind).close()
        else:
            with pytest.raises(DatabaseLost, match=REFUSED):
                connect(behind)


@pytest.mark.parametrize("left_out", ["search_path", "lock_timeout", "tcp_keepalives_idle"])
def test_a_pooler_that_leaves_out_a_setting_is_refused(
    database: PostgresAddress, left_out: str
) -> None:
    with_settings(database, {name: value for name, value in ALL.items() if name != left_out})
    with (
        pgbouncer(database, "session") as behind,
        pytest.raises(DatabaseLost, match=rf"leaves out options.*\(.*{left_out}") as caught,
    ):
        connect(behind)
    assert "statement_timeout" not in str(caught.value)


def test_a_pooler_that_keeps_the_locks_of_lost_servers_is_refused(
    database: PostgresAddress,
) -> None:
    with_settings(database, ALL)
    unreset = ("server_reset_query = ", "default_pool_size = 3")
    with (
        pgbouncer(database, "session", *unreset) as behind,
        pytest.raises(DatabaseLost, match="server_reset_query"),
    ):
        connect(behind)
