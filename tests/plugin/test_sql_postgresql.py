"""The SQL plugin over a PostgreSQL server, which must keep its data and its password to itself."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from postgres_server import PASSWORD, QUOTED, postgres_server
from sql_kit import ORDERS, SqlEngine

from taskweaver.plugin import Plugin
from taskweaver.utils.redact import MASK


@pytest.fixture(scope="module")
def boss() -> Iterator[str]:
    """Address of a database, with the rights of its superuser: refusing must not rest on rights."""
    with postgres_server() as address:
        with closing(psycopg.connect(address, autocommit=True)) as connection:
            connection.execute("CREATE TABLE orders (city text, amount numeric)")
            connection.execute(f"INSERT INTO orders VALUES {ORDERS}".encode())
            connection.execute("CREATE SEQUENCE counter")
        yield address


FOLDER = Path(tempfile.gettempdir(), f"touched-{os.getpid()}")


class TestPostgresql(SqlEngine):
    reading = (
        "TABLE orders",
        "/* first */ SELECT '100 % {}'",
        "EXPLAIN SELECT * FROM orders",
        "show server_version",
        "(SELECT 1) UNION SELECT 2",
        "SELECT '{\"a\": 1}'::jsonb, ARRAY[1, 2], now(), 'x'::bytea",
    )
    refused = (
        "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
        "EXPLAIN ANALYZE DELETE FROM orders",
        "SELECT nextval('counter')",
        "SELECT * INTO copy FROM orders",
        "SELECT * FROM orders FOR UPDATE",
        f"COPY (SELECT 1) TO PROGRAM 'touch {FOLDER}/touched'",
        f"/* /* */ explain */ COPY (SELECT 1) TO PROGRAM 'touch {FOLDER}/touched'",
        f"COPY (SELECT 1) TO '{FOLDER}/touched'",
        "DO $$ BEGIN PERFORM 1; END $$",
        "SET default_transaction_read_only = off",
        "COMMIT; DELETE FROM orders",
        "EXPLAIN SELECT 1; COMMIT; DELETE FROM orders",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "SELECT query_to_xml('DELETE FROM orders', true, true, '')",
        "SELECT 'infinity'::date",
        "SELECT '\0'",
    )
    endless = "SELECT pg_sleep(100)"

    @pytest.fixture
    def address(self, boss: str) -> str:
        return boss

    @pytest.fixture
    def state(self, boss: str) -> Iterator[Callable[[], list[Any]]]:
        """Return the rows, the sequence, the tables, and a folder the server could write to."""
        FOLDER.mkdir()
        FOLDER.chmod(0o777)
        queries = (
            "SELECT * FROM orders",
            "SELECT is_called FROM counter",
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
        )

        def look() -> list[Any]:
            with closing(psycopg.connect(boss)) as connection:
                found = [connection.execute(query).fetchall() for query in queries]
            return [*found, list(FOLDER.iterdir())]

        yield look
        shutil.rmtree(FOLDER)


def test_options_in_an_address_change_nothing(sql: Plugin, boss: str) -> None:
    options = quote("-c default_transaction_read_only=off -c statement_timeout=0")
    address = f"{boss}?options={options}"
    assert sql("SHOW statement_timeout", address)[0].iloc[0, 0] == "1min"
    with pytest.raises(ValueError, match="Only statements that read"):
        sql("SELECT nextval('counter')", address)


def told(sql: Plugin, address: str) -> str:
    """Return everything an error shows, as a notebook would print it."""
    with pytest.raises(ValueError, match="PostgreSQL") as caught:
        sql("SELECT 1", address)
    lines = traceback.format_exception(caught.value)
    return str(caught.value) + "".join(lines)


def test_a_password_is_in_no_message(sql: Plugin, boss: str) -> None:
    odd = "s3cret%zz", "x@s3cret", "s3cret:x", "x/s3cret", "s3cret%00x", "1?s3cret", "x#s3cret"
    for wrong in (*odd, "other-s3cret", "x s3cret"):
        text = told(sql, boss.replace(QUOTED, wrong))
        assert "s3cret" not in text, wrong
        assert PASSWORD not in text


def test_a_password_a_query_repeats_is_masked(sql: Plugin, boss: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'"{MASK}"')):
        sql(f'SELECT * FROM "{PASSWORD}"', boss)


def test_a_server_that_does_not_answer_is_told_without_the_password(sql: Plugin) -> None:
    for address in (
        "postgresql://me:s3cret@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=me&password=s3cret",
        "postgresql://me:s3cret@127.0.0.1:port/db",
        "postgresql://me:s3cret@127.0.0.1:1/db?nonsense=s3cret",
    ):
        assert "s3cret" not in told(sql, address)
    assert "cannot be reached" in told(sql, "postgresql://me:s3cret@127.0.0.1:1/db")
