"""One reading SQL statement over an SQLite file.

The file is opened read-only, and an authorizer lets SQLite itself refuse everything but reading:
no guess is made from the text of a query.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pandas as pd

from taskweaver.plugin import Plugin, register_plugin, test_plugin

_READING = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_READING_PRAGMAS = frozenset(
    {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list"}
)
_STEPS_BETWEEN_CHECKS = 10_000


@register_plugin
class SqlQuery(Plugin):
    """Reads rows from an SQLite file."""

    def __call__(self, query: str, database: str) -> tuple[pd.DataFrame, str]:
        """Run a query.

        Args:
            query: One statement that reads.
            database: Name or path of the file.

        Returns:
            The rows, and a line about them.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is no database, or the query cannot be run or would write.
        """
        if not isinstance(query, str):
            raise ValueError(f"The query must be a text, not {type(query).__name__}.")
        path = Path(database).expanduser()
        if not path.is_file():
            raise FileNotFoundError(_no_file(path))
        max_rows = int(self.config.get("max_rows", 100_000))
        timeout_s = float(self.config.get("timeout_s", 60))
        uri = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            tables = _tables(connection, path)
            names, rows = _read(connection, query, (max_rows, timeout_s), tables)
        is_cut = len(rows) > max_rows
        df = pd.DataFrame.from_records(rows[:max_rows], columns=_unique(names))
        description = f"{len(df):,} rows with the columns {', '.join(map(str, df.columns))}."
        if is_cut:
            description += f" There are more rows; only the first {max_rows:,} were read."
        self.log("info", description)
        return df, description


def _no_file(path: Path) -> str:
    folder = path.parent
    names = sorted(p.name for p in folder.glob("*.[ds][bq]*") if p.is_file())[:10]
    there = f" Database files there: {', '.join(names)}." if names else ""
    return f"There is no database file {str(path)!r}.{there}"


def _tables(connection: sqlite3.Connection, path: Path) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    try:
        return [name for (name,) in connection.execute(query)]
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path.name!r} cannot be read as an SQLite database: {error}.") from error


def _read(
    connection: sqlite3.Connection,
    query: str,
    limits: tuple[int, float],
    tables: Sequence[str],
) -> tuple[list[str], list[tuple[object, ...]]]:
    """Run a query; return its column names and at most one row more than is wanted."""
    max_rows, timeout_s = limits
    refused: list[int] = []
    deadline = time.monotonic() + timeout_s

    def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        is_safe = action in _READING and second != "load_extension"
        is_pragma = action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _READING_PRAGMAS
        if is_safe or is_pragma:
            return sqlite3.SQLITE_OK
        refused.append(action)
        return sqlite3.SQLITE_DENY

    connection.set_authorizer(authorize)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_CHECKS)
    try:
        cursor = connection.execute(query)
        if cursor.description is None:
            raise ValueError("The query returns no rows: give one SELECT statement.")
        return [column[0] for column in cursor.description], cursor.fetchmany(max_rows + 1)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise ValueError(
            _explain(error, is_refused=bool(refused), timeout_s=timeout_s, tables=tables)
        ) from error


def _explain(error: Exception, *, is_refused: bool, timeout_s: float, tables: Sequence[str]) -> str:
    text = str(error)
    if is_refused:
        return "Only statements that read are allowed: one SELECT, WITH, VALUES or EXPLAIN."
    if "one statement" in text:
        return "Only one statement at a time is allowed; give the queries one after another."
    if text == "interrupted":
        return f"The query took longer than {timeout_s:g} s and was stopped."
    if "no such table" in text:
        return f"{text.capitalize()}. The tables are: {', '.join(tables) or 'none'}."
    return f"The query cannot be run: {text}. The tables are: {', '.join(tables) or 'none'}."


def _unique(names: Sequence[str]) -> list[str]:
    """Number column names that come twice, as in a join: a DataFrame is easier to use so."""
    unique: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in unique:
            candidate, number = f"{name}_{number}", number + 1
        unique.append(candidate)
    return unique


def _shop(folder: Path) -> Path:
    path = folder / "plugin_test_shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE orders (city TEXT, amount REAL)")
        rows = [("Bonn", 10.0), ("Bonn", 5.0), ("Ulm", None)]
        connection.executemany("INSERT INTO orders VALUES (?, ?)", rows)
    return path


@test_plugin(name="a query returns rows", description="A grouped query over a small database.")
def test_a_query_returns_rows(plugin: Plugin) -> None:
    """A grouped query over a small database."""
    with tempfile.TemporaryDirectory() as folder:
        query = "SELECT city, SUM(amount) AS total FROM orders GROUP BY city ORDER BY city"
        df, description = plugin(query, str(_shop(Path(folder))))
    assert df.to_dict("records")[0] == {"city": "Bonn", "total": 15.0}, description


@test_plugin(name="writing is refused", description="A statement that deletes raises.")
def test_writing_is_refused(plugin: Plugin) -> None:
    """A statement that deletes raises."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            plugin("DELETE FROM orders", str(_shop(Path(folder))))
        except ValueError:
            return
    raise AssertionError("the statement was run")
