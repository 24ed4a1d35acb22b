"""Promises that the SQL plugin keeps over each engine."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from shipped import make

from taskweaver.plugin import Plugin

ORDERS = "('Bonn', 10), ('Bonn', 5.5), ('Köln', NULL), ('Ulm', 1)"
"""Rows of the table ``orders``, with the columns ``city`` and ``amount``."""
_WRITING = (
    "DELETE FROM orders",
    "INSERT INTO orders VALUES ('x', 1) RETURNING city",
    "CREATE TEMP TABLE x (a INT)",
    "DROP TABLE orders",
    "WITH x AS (SELECT 1) DELETE FROM orders",
    "SELECT 1; DELETE FROM orders",
)
_PROBLEMS = (
    ("SELECT 1; DROP TABLE orders", "Only one statement"),
    ("SELECT * FROM order_items", "order_items.* The tables are: .*orders"),
    ("SELECT town FROM orders", "town.* The tables are: .*orders"),
    ("SELECT FROM WHERE", "syntax error"),
    ("", "returns no rows|cannot be run|Only one"),
)


class SqlEngine:
    """Tests of an engine.

    A subclass has two fixtures: the address of a database with the table ``orders``, and a state
    of everything around it that a statement could change.

    Attributes:
        reading: Further statements that read.
        refused: Further statements that do more.
        endless: A query that takes too long.
    """

    reading: ClassVar[tuple[str, ...]]
    refused: ClassVar[tuple[str, ...]]
    endless: ClassVar[str]

    def test_rows_come_back_with_their_columns(self, sql: Plugin, address: str) -> None:
        query = "SELECT city, SUM(amount) AS total FROM orders GROUP BY city ORDER BY city;"
        df, description = sql(query, address)
        assert df["city"].tolist() == ["Bonn", "Köln", "Ulm"]
        assert df["total"].tolist()[0] == 15.5
        assert df["total"].dtype == float
        assert description == "3 rows with the columns city, total."
        df, description = sql("SELECT * FROM orders", address)
        assert len(df) == 3
        assert "There are more rows" in description
        df, _ = sql("SELECT 1 AS a, 2 AS a WHERE 1 = 0", address)
        assert df.empty
        assert list(df.columns) == ["a", "a_2"]

    def test_every_way_of_reading_is_allowed(self, sql: Plugin, address: str) -> None:
        for query in ("VALUES (1)", "WITH x AS (SELECT 1) SELECT * FROM x", *self.reading):
            assert len(sql(query, address)[0]), query

    def test_what_does_not_only_read_is_refused(
        self, sql: Plugin, address: str, state: Any
    ) -> None:
        before = state()
        for query in (*_WRITING, *self.refused):
            with pytest.raises(ValueError, match=r"Only|cannot be run"):
                sql(query, address)
            assert state() == before, query

    def test_a_query_that_cannot_be_run_is_explained(self, sql: Plugin, address: str) -> None:
        for query, problem in _PROBLEMS:
            with pytest.raises(ValueError, match=problem):
                sql(query, address)
        with pytest.raises(ValueError, match="Only statements that read"):
            sql("DELETE FROM orders", address)

    def test_a_query_that_takes_too_long_is_stopped(self, context: Any, address: str) -> None:
        hasty = make("sql_query", context, timeout_s=0.5)
        with pytest.raises(ValueError, match=r"longer than 0\.5 s"):
            hasty(self.endless, address)

    def test_writing_is_done_where_it_is_granted(self, writing: Plugin, address: str) -> None:
        writing("CREATE TABLE notes (text VARCHAR)", address)
        try:
            writing("INSERT INTO notes VALUES ('a'), ('b')", address)
            df, _ = writing("UPDATE notes SET text = text || '!' RETURNING text", address)
            assert df["text"].tolist() == ["a!", "b!"]
            assert writing("SELECT * FROM notes", address)[0]["text"].tolist() == ["a!", "b!"]
            with pytest.raises(ValueError, match="Only one statement"):
                writing("DELETE FROM notes; DELETE FROM orders", address)
        finally:
            writing("DROP TABLE notes", address)
