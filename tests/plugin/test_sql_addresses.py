"""The SQL plugin over addresses: SQLite and DuckDB files, what they refuse, and writing."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from shipped import make
from sql_kit import ORDERS, SqlEngine

from taskweaver.plugin import Plugin


@pytest.fixture(scope="module")
def first_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DuckDB file, of which each test gets a copy: a copy takes no time."""
    path = tmp_path_factory.mktemp("first") / "lake.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE TABLE orders (city VARCHAR, amount DECIMAL(9, 2))")
        connection.execute(f"INSERT INTO orders VALUES {ORDERS}")
    return path


@pytest.fixture
def lake(tmp_path: Path, first_lake: Path) -> Path:
    path = tmp_path / "my lake.duckdb"
    shutil.copy(first_lake, path)
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    return path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "my shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE orders (city TEXT, amount REAL)")
        connection.execute(f"INSERT INTO orders VALUES {ORDERS}")
    return path


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, bytes]]:
    """Return the files of the database's folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    return lambda: {path.name: path.read_bytes() for path in tmp_path.iterdir()}


class TestSqlite(SqlEngine):
    reading = (
        "PRAGMA table_info(orders)", "EXPLAIN QUERY PLAN SELECT * FROM orders",
        "-- the tables\nSELECT name FROM sqlite_master",
    )  # fmt: skip
    refused = (
        "ATTACH DATABASE 'other.db' AS other", "VACUUM INTO 'copy.db'", "BEGIN IMMEDIATE",
        "PRAGMA journal_mode = DELETE", "SELECT load_extension('x')",
    )  # fmt: skip
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT SUM(i) FROM n"

    @pytest.fixture
    def address(self, shop: Path) -> str:
        return str(shop)


class TestDuckdb(SqlEngine):
    reading = ("FROM orders", "EXPLAIN SELECT 1", "DESCRIBE orders", "SHOW TABLES")
    refused = (
        "COPY orders TO 'out.csv'", "EXPORT DATABASE 'out'", "ATTACH 'other.duckdb'", "BEGIN",
        "INSTALL httpfs", "SET enable_external_access = true", "EXPLAIN ANALYZE DELETE FROM orders",
    )  # fmt: skip
    endless = "SELECT SUM(a.range) FROM range(100000000) a, range(100000) b"

    @pytest.fixture
    def address(self, lake: Path) -> Iterator[str]:
        before = threading.active_count()
        yield f"duckdb:///{lake}"
        assert threading.active_count() == before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM 'secret.csv'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
        "COPY orders TO 'out.csv'",
        "ATTACH 'other.duckdb'",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "FROM statement",
    ],
)
def test_nothing_but_the_duckdb_file_is_reached(
    sql: Plugin, writing: Plugin, lake: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake.parent)
    for plugin in (sql, writing):
        with pytest.raises(ValueError, match=r"Only|cannot be run"):
            plugin(query, f"duckdb:///{lake}")
    assert sorted(path.name for path in lake.parent.iterdir()) == ["my lake.duckdb", "secret.csv"]


def test_only_what_is_wanted_of_many_rows_is_read(context: Any, lake: Path) -> None:
    sql = make("sql_query", context, max_rows=5)
    df, description = sql("FROM range(1000000000)", f"duckdb:///{lake}")
    assert len(df) == 5
    assert "There are more rows" in description


def test_files_that_are_missing_or_no_database_are_told(sql: Plugin, tmp_path: Path) -> None:
    (tmp_path / "notes.duckdb").write_text("only words " * 100)
    for address, error, problem in (
        ("duckdb:///{}/notes.duckdb", ValueError, "'notes.duckdb' cannot be opened as a DuckDB"),
        ("duckdb:///{}/gone.duckdb", FileNotFoundError, "Database files there: notes.duckdb"),
        ("{}/gone.db", FileNotFoundError, "Database files there: notes.duckdb"),
        ("{}/notes.duckdb", ValueError, "For DuckDB give duckdb:///"),
    ):
        with pytest.raises(error, match=problem):
            sql("SELECT 1", address.format(tmp_path))
    (tmp_path / "notes.duckdb").rename(tmp_path / "notes.db")
    with pytest.raises(ValueError, match=r"'notes\.db' cannot be read as an SQLite database"):
        sql("SELECT 1", f"{tmp_path}/notes.db")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.db"]


def test_an_sqlite_address_is_a_path(
    sql: Plugin, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT city FROM orders"
    assert len(sql(query, f"sqlite:///{shop}")[0]) == 3
    monkeypatch.chdir(shop.parent)
    assert len(sql(query, "sqlite:///my shop.db")[0]) == 3


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("sqlite://shop.db", "Write three slashes .* sqlite:///path"),
        ("duckdb:///", "Write three slashes"),
        ("mysql://me:hidden@host/db", "There is no engine for 'mysql'"),
    ],
)
def test_an_address_of_no_known_form_is_explained(sql: Plugin, address: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        sql("SELECT 1", address)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "query", ["ATTACH 'other.db' AS other", "VACUUM INTO 'copy.db'", "PRAGMA writable_schema = 1"]
)
def test_writing_reaches_no_other_sqlite_file(
    writing: Plugin, shop: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.parent)
    with pytest.raises(ValueError, match="Other database files"):
        writing(query, str(shop))
    assert [path.name for path in shop.parent.iterdir()] == ["my shop.db"]


def test_only_a_plain_false_grants_writing(context: Any, shop: Path) -> None:
    for value in (None, 0, "false", True):
        with pytest.raises(ValueError, match="Only statements that read"):
            make("sql_query", context, read_only=value)("DELETE FROM orders", str(shop))


@pytest.mark.parametrize(
    ("library", "address"),
    [("duckdb", "duckdb:///{lake}"), ("psycopg", "postgresql://127.0.0.1/db")],
)
def test_without_the_library_the_engine_says_what_to_install(
    sql: Plugin, lake: Path, library: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf'pip install .*"{library}'):
        sql("SELECT 1", address.format(lake=lake))
