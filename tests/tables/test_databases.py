"""SQLite files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from plain import loaded

from taskweaver.tables.errors import TableError


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (zip TEXT, day TEXT, amount REAL)")
        connection.execute("INSERT INTO orders VALUES ('00501', '2024-01-31', 2.5)")
        connection.execute('CREATE TABLE "odd ""name" (a INTEGER)')
        connection.commit()
    return path


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
def test_a_table_is_read_with_its_types(shop: Path) -> None:
    table = loaded(shop)

    assert table.frame.zip.tolist() == ["00501"]
    assert table.frame.day.dt.year.tolist() == [2024]
    assert table.report[:2] == (
        "shop.db: 1 row x 3 columns, table 'orders'",
        "Other tables: 'odd \"name'.",
    )


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
def test_a_table_is_chosen_by_any_name(shop: Path) -> None:
    assert list(loaded(shop, 'ODD "name').frame.columns) == ["a"]
    with pytest.raises(TableError, match="no table 'x'; there are 'orders'"):
        loaded(shop, "x")
