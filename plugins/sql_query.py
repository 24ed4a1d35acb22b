"""One SQL statement over a database; the engines are in `taskweaver.plugin.library.sql`."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pandas as pd

from taskweaver.plugin import Plugin, register_plugin, test_plugin
from taskweaver.plugin.library.sql.run import run_sql
from taskweaver.plugin.library.sql.statement import Statement


@register_plugin
class SqlQuery(Plugin):
    """Reads rows from a database; changes them only where the configuration says so."""

    def __call__(self, query: str, database: str) -> tuple[pd.DataFrame, str]:
        """Run a query.

        Args:
            query: One statement.
            database: Path of an SQLite file, or an address: ``sqlite:///path``,
                ``duckdb:///path``, ``postgresql://user:password@host/database``.

        Returns:
            The rows, and a line about them.

        Raises:
            FileNotFoundError: If the file does not exist.
            ValueError: If the database cannot be opened, or the query cannot be run or is refused.
            ImportError: If the library for the database is not installed.
        """
        if not isinstance(query, str):
            raise ValueError(f"The query must be a text, not {type(query).__name__}.")
        max_rows = int(self.config.get("max_rows", 100_000))
        statement = Statement(
            query,
            max_rows,
            float(self.config.get("timeout_s", 60)),
            # Anything but a plain `false` keeps it reading.
            read_only=self.config.get("read_only", True) is not False,
        )
        answer = run_sql(str(database), statement)
        if answer.changed is not None:
            description = f"{answer.changed:,} rows were changed."
            self.log("info", description)
            return pd.DataFrame(), description
        names = _unique(answer.names)
        df = pd.DataFrame.from_records(answer.rows[:max_rows], columns=names, coerce_float=True)
        description = f"{len(df):,} rows with the columns {', '.join(map(str, df.columns))}."
        if len(answer.rows) > max_rows:
            description += f" There are more rows; only the first {max_rows:,} were read."
        self.log("info", description)
        return df, description


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
