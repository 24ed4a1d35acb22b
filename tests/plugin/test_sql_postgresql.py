"""The SQL plugin over a PostgreSQL server, which must keep its data and its password to itself."""

from __future__ import annotations

import re
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from postgres_server import PASSWORD, QUOTED, postgres_server
from shipped import make

from taskweaver.plugin import Plugin, temp_context
from taskweaver.utils.redact import MASK


@pytest.fixture(scope="module")
def boss() -> Iterator[str]:
    """Address of a database, with the rights of its superuser: refusing must not rest on rights."""
    with postgres_server() as address:
        with closing(psycopg.connect(address, autocommit=True)) as connection:
            connection.execute("CREATE TABLE orders (city text, amount numeric)")
            connection.execute("INSERT INTO orders VALUES ('Bonn', 10), ('Bonn', 5.5)")
            connection.execute("INSERT INTO orders VALUES ('Köln', NULL), ('Ulm', 1)")
            connection.execute("CREATE SEQUENCE counter")
        yield address


@pytest.fixture
def context() -> Iterator[Any]:
    with temp_context() as ctx:
        yield ctx


@pytest.fixture
def sql(context: Any) -> Plugin:
    return make("sql_query", context, max_rows=3, timeout_s=60)


def test_postgresql_rows_come_back_with_their_columns(sql: Plugin, boss: str) -> None:
    query = "SELECT city, SUM(amount) AS total FROM orders GROUP BY city ORDER BY city;"
    df, description = sql(query, boss)
    assert df["city"].tolist() == ["Bonn", "Köln", "Ulm"]
    assert df["total"].tolist()[0] == 15.5
    assert df["total"].dtype == float
    assert description == "3 rows with the columns city, total."
    df, description = sql("TABLE orders", boss.replace("postgresql:", "postgres:"))
    assert len(df) == 3
    assert "There are more rows" in description


@pytest.mark.parametrize(
    "query",
    [
        "VALUES (1)",
        "WITH x AS (SELECT 1) SELECT * FROM x -- why not",
        "/* first */ SELECT '100 % {}'",
        "EXPLAIN SELECT * FROM orders",
        "show server_version",
        "(SELECT 1) UNION SELECT 2",
        "SELECT '{\"a\": 1}'::jsonb, ARRAY[1, 2], now(), 'x'::bytea",
    ],
)
def test_every_way_of_reading_postgresql_is_allowed(sql: Plugin, boss: str, query: str) -> None:
    assert len(sql(query, boss)[0])


def test_no_rows_of_postgresql_are_a_table_with_columns(sql: Plugin, boss: str) -> None:
    df, _ = sql("SELECT city FROM orders WHERE false", boss)
    assert df.empty
    assert list(df.columns) == ["city"]


@pytest.fixture
def writable() -> Iterator[Path]:
    """Return a folder the server could write to."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def rows(address: str, query: str) -> list[tuple[Any, ...]]:
    with closing(psycopg.connect(address)) as connection:
        return connection.execute(query.encode()).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM orders",
        "INSERT INTO orders VALUES ('x', 1) RETURNING city",
        "CREATE TABLE x (a int)",
        "CREATE TEMP TABLE x (a int)",
        "DROP TABLE orders",
        "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
        "EXPLAIN ANALYZE DELETE FROM orders",
        "SELECT nextval('counter')",
        "SELECT * INTO copy FROM orders",
        "SELECT * FROM orders FOR UPDATE",
        "COPY (SELECT 1) TO PROGRAM 'touch {folder}/touched'",
        "/* /* */ explain */ COPY (SELECT 1) TO PROGRAM 'touch {folder}/touched'",
        "COPY (SELECT 1) TO '{folder}/touched'",
        "DO $$ BEGIN PERFORM 1; END $$",
        "SET default_transaction_read_only = off",
        "SET TRANSACTION READ WRITE",
        "COMMIT",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "SELECT 1; DELETE FROM orders",
        "COMMIT; DELETE FROM orders",
        "EXPLAIN SELECT 1; COMMIT; DELETE FROM orders",
        "SELECT query_to_xml('DELETE FROM orders', true, true, '')",
    ],
)
def test_postgresql_refuses_what_does_not_only_read(
    sql: Plugin, boss: str, query: str, writable: Path
) -> None:
    with pytest.raises(ValueError, match=r"Only|cannot be run"):
        sql(query.replace("{folder}", str(writable)), boss)
    assert rows(boss, "SELECT count(*), sum(amount) FROM orders") == [(4, 16.5)]
    assert rows(boss, "SELECT is_called FROM counter") == [(False,)]
    assert rows(boss, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == [
        ("orders",)
    ]
    assert not list(writable.iterdir())


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("DELETE FROM orders", "Only statements that read"),
        ("SELECT 1; SELECT 2", "Only one statement"),
        ("SELECT * FROM order_items", '"order_items" does not exist. The tables are: orders'),
        ("SELECT town FROM orders", '"town" does not exist.* The tables are: orders'),
        ("SELECT 1 +", "syntax error"),
        ("", "cannot be run|Only one"),
        ("SELECT 'infinity'::date", "cannot be run"),
        ("SELECT '\0'", "cannot be run"),
    ],
)
def test_a_postgresql_query_that_cannot_be_run_is_explained(
    sql: Plugin, boss: str, query: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        sql(query, boss)


@pytest.mark.parametrize("query", ["SELECT pg_sleep(100)", "EXPLAIN ANALYZE SELECT pg_sleep(100)"])
def test_a_postgresql_query_that_takes_too_long_is_stopped(
    context: Any, boss: str, query: str
) -> None:
    hasty = make("sql_query", context, timeout_s=1)
    with pytest.raises(ValueError, match="longer than 1 s"):
        hasty(query, boss)


def test_options_in_an_address_change_nothing(sql: Plugin, boss: str) -> None:
    options = quote("-c default_transaction_read_only=off -c statement_timeout=0")
    address = f"{boss}?options={options}"
    assert sql("SHOW statement_timeout", address)[0].iloc[0, 0] == "1min"
    with pytest.raises(ValueError, match="Only statements that read"):
        sql("SELECT nextval('counter')", address)


def test_writing_to_postgresql_is_done_where_it_is_granted(context: Any, boss: str) -> None:
    writing = make("sql_query", context, read_only=False)
    assert writing("CREATE TABLE notes (text text)", boss)[1] == "0 rows were changed."
    try:
        assert "2 rows" in writing("INSERT INTO notes VALUES ('a'), ('b')", boss)[1]
        df, _ = writing("UPDATE notes SET text = text || '!' RETURNING text", boss)
        assert df["text"].tolist() == ["a!", "b!"]
        assert writing("SELECT * FROM notes", boss)[0]["text"].tolist() == ["a!", "b!"]
        with pytest.raises(ValueError, match="Only one statement"):
            writing("DELETE FROM notes; DELETE FROM orders", boss)
    finally:
        writing("DROP TABLE notes", boss)


def told(sql: Plugin, address: str) -> str:
    """Return everything an error shows, as a notebook would print it."""
    with pytest.raises(ValueError, match="PostgreSQL") as caught:
        sql("SELECT 1", address)
    lines = traceback.format_exception(caught.value)
    return str(caught.value) + "".join(lines)


@pytest.mark.parametrize(
    "wrong",
    [
        "other-s3cret",
        "s3cret%zz",
        "x@s3cret",
        "s3cret:x",
        "x/s3cret",
        "s3cret%00x",
        "1?s3cret",
        "x#s3cret",
        "x s3cret",
    ],
)
def test_a_password_is_in_no_message(sql: Plugin, boss: str, wrong: str) -> None:
    text = told(sql, boss.replace(QUOTED, wrong))
    assert "s3cret" not in text
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
