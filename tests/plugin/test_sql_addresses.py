"""The SQL plugin over addresses: SQLite and DuckDB files, what they refuse, and writing."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from shipped import make

from taskweaver.plugin import Plugin, temp_context


@pytest.fixture
def context() -> Iterator[Any]:
    with temp_context() as ctx:
        yield ctx


@pytest.fixture
def sql(context: Any) -> Plugin:
    return make("sql_query", context, max_rows=3)


@pytest.fixture
def writing(context: Any) -> Plugin:
    return make("sql_query", context, read_only=False)


@pytest.fixture(scope="module")
def first_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DuckDB file, of which each test gets a copy: a copy takes no time."""
    path = tmp_path_factory.mktemp("first") / "lake.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE TABLE orders (city VARCHAR, amount DECIMAL(9, 2))")
        connection.execute("INSERT INTO orders VALUES ('Bonn', 10), ('Bonn', 5.5), ('Köln', NULL)")
        connection.execute("INSERT INTO orders VALUES ('Ulm', 1)")
    return path


@pytest.fixture
def lake(tmp_path: Path, first_lake: Path) -> Path:
    path = tmp_path / "my lake.duckdb"
    shutil.copy(first_lake, path)
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    return path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE orders (city TEXT, amount REAL)")
        connection.execute("INSERT INTO orders VALUES ('Bonn', 10)")
    return path


def test_duckdb_rows_come_back_with_their_columns(sql: Plugin, lake: Path) -> None:
    query = "SELECT city, SUM(amount) AS total FROM orders GROUP BY city ORDER BY city"
    df, description = sql(query, f"duckdb:///{lake}")
    assert df["city"].tolist() == ["Bonn", "Köln", "Ulm"]
    assert df["total"].dtype == float
    assert description == "3 rows with the columns city, total."
    assert "There are more rows" in sql("FROM orders", f"duckdb:///{lake}")[1]
    df, _ = sql("SELECT 1 AS a, 2 AS a", f"duckdb:///{lake}")
    assert list(df.columns) == ["a", "a_2"]


@pytest.mark.parametrize(
    "query",
    ["PRAGMA table_info('orders')", "EXPLAIN SELECT 1", "DESCRIBE orders", "SHOW TABLES"],
)
def test_every_way_of_reading_duckdb_is_allowed(sql: Plugin, lake: Path, query: str) -> None:
    assert len(sql(query, f"duckdb:///{lake}")[0])


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM orders",
        "INSERT INTO orders VALUES ('x', 1) RETURNING city",
        "CREATE TABLE x (a INT)",
        "CREATE TEMP TABLE x (a INT)",
        "DROP TABLE orders",
        "COPY orders TO 'out.csv'",
        "EXPORT DATABASE 'out'",
        "ATTACH 'other.duckdb'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "EXPLAIN ANALYZE DELETE FROM orders",
        "BEGIN",
    ],
)
def test_duckdb_refuses_what_does_not_only_read(
    sql: Plugin, lake: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake.parent)
    before = lake.read_bytes()
    with pytest.raises(ValueError, match="Only statements that read"):
        sql(query, f"duckdb:///{lake}")
    assert lake.read_bytes() == before
    assert sorted(path.name for path in lake.parent.iterdir()) == ["my lake.duckdb", "secret.csv"]


@pytest.mark.parametrize("is_writing", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM 'secret.csv'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
        "COPY orders TO 'out.csv'",
        "COPY orders FROM 'secret.csv'",
        "ATTACH 'other.duckdb'",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "FROM statement",
    ],
)
def test_nothing_but_the_duckdb_file_is_reached(
    sql: Plugin,
    writing: Plugin,
    lake: Path,
    query: str,
    *,
    is_writing: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(lake.parent)
    with pytest.raises(ValueError, match=r"Only|cannot be run"):
        (writing if is_writing else sql)(query, f"duckdb:///{lake}")
    assert sorted(path.name for path in lake.parent.iterdir()) == ["my lake.duckdb", "secret.csv"]


def test_a_duckdb_query_that_takes_too_long_is_stopped(context: Any, lake: Path) -> None:
    before = threading.active_count()
    hasty = make("sql_query", context, timeout_s=0.3)
    with pytest.raises(ValueError, match=r"longer than 0\.3 s"):
        hasty("SELECT SUM(a.range) FROM range(100000000) a, range(100000) b", f"duckdb:///{lake}")
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT 1; DROP TABLE orders", "Only one statement"),
        ("SELECT * FROM order_items", "order_items does not exist.* The tables are: orders"),
        ("SELEKT 1", "syntax error"),
        ("", "returns no rows"),
    ],
)
def test_a_duckdb_query_that_cannot_be_run_is_explained(
    sql: Plugin, lake: Path, query: str, problem: str
) -> None:
    before = threading.active_count()
    with pytest.raises(ValueError, match=problem):
        sql(query, f"duckdb:///{lake}")
    assert threading.active_count() == before


def test_only_what_is_wanted_of_many_rows_is_read(context: Any, lake: Path) -> None:
    sql = make("sql_query", context, max_rows=5)
    df, description = sql("FROM range(1000000000)", f"duckdb:///{lake}")
    assert len(df) == 5
    assert "There are more rows" in description


def test_files_that_are_missing_or_no_database_are_told(sql: Plugin, tmp_path: Path) -> None:
    (tmp_path / "notes.duckdb").write_text("only words " * 100)
    with pytest.raises(ValueError, match=r"'notes\.duckdb' cannot be opened as a DuckDB"):
        sql("SELECT 1", f"duckdb:///{tmp_path}/notes.duckdb")
    with pytest.raises(FileNotFoundError, match=r"Database files there: notes\.duckdb"):
        sql("SELECT 1", f"duckdb:///{tmp_path}/gone.duckdb")
    with pytest.raises(ValueError, match="For DuckDB give duckdb:///"):
        sql("SELECT 1", f"{tmp_path}/notes.duckdb")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.duckdb"]


def test_an_sqlite_address_is_a_path(
    sql: Plugin, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT city FROM orders"
    assert sql(query, f"sqlite:///{shop}")[0]["city"].tolist() == ["Bonn"]
    monkeypatch.chdir(shop.parent)
    assert sql(query, "sqlite:///shop.db")[0]["city"].tolist() == ["Bonn"]


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


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_writing_is_done_where_it_is_granted(
    writing: Plugin, shop: Path, lake: Path, engine: str
) -> None:
    address = f"{engine}:///{shop if engine == 'sqlite' else lake}"
    writing("DELETE FROM orders", address)
    _, description = writing("INSERT INTO orders VALUES ('Kiel', 3), ('Jena', 4)", address)
    if engine == "sqlite":
        assert description == "2 rows were changed."
    writing("CREATE TABLE more (a INT)", address)
    assert writing("SELECT * FROM orders", address)[0]["city"].tolist() == ["Kiel", "Jena"]
    assert writing("SELECT * FROM more", address)[0].empty


@pytest.mark.parametrize(
    "query", ["ATTACH 'other.db' AS other", "VACUUM INTO 'copy.db'", "PRAGMA writable_schema = 1"]
)
def test_writing_reaches_no_other_sqlite_file(
    writing: Plugin, shop: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.parent)
    with pytest.raises(ValueError, match="Other database files"):
        writing(query, str(shop))
    assert [path.name for path in shop.parent.iterdir()] == ["shop.db"]


@pytest.mark.parametrize("value", [None, 0, "false", "no", True])
def test_only_a_plain_false_grants_writing(context: Any, shop: Path, value: Any) -> None:
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
