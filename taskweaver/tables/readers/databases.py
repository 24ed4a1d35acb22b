"""Read tables of SQLite files, which are opened for reading alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from taskweaver.tables.errors import TableError
from taskweaver.tables.plans.plan import ReadPlan
from taskweaver.tables.plans.steps import Frame, opened_database, read_source, rows_of
from taskweaver.tables.readers.raw import Raw, exact, part_named, typed
from taskweaver.utils.sqlite_files import quoted_name

_TABLES = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
    " AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
)

_STEPS = 100_000
"""Steps of a query between two moments in which it can be stopped."""


def table_names(path: Path) -> list[str]:
    """Return the names of a database's tables and views.

    Raises:
        TableError: If it cannot be read.
    """
    try:
        with opened_database(path) as connection:
            return [str(row[0]) for row in connection.execute(_TABLES)]
    except sqlite3.Error as error:
        raise TableError(f"{path.name} is no SQLite database: {error}.") from error


def first_rows(path: Path, table: str, count: int) -> tuple[Frame, int]:
    """Return the first rows of a table or view, and the number of all.

    A view can compute for ever: between its steps a time limit of the caller can end it.

    Raises:
        TableError: If it cannot be read.
        sqlite3.OperationalError: If a time limit ended it.
    """
    name = quoted_name(table)
    try:
        with opened_database(path) as connection:
            connection.set_progress_handler(lambda: 0, _STEPS)
            ((rows,),) = connection.execute(f"SELECT count(*) FROM {name}")
            frame = rows_of(connection.execute(f"SELECT * FROM {name} LIMIT {count}"))
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise
        raise TableError(f"The table {table!r} of {path.name} cannot be read: {error}.") from error
    return typed(ReadPlan("sql", str(path)), frame).frame, int(rows)


def read_database(path: Path, name: str, table: str | int | None) -> Raw:
    """Read a table of a SQLite file, which the plan calls `name`.

    The table is given by name or number (from 0); None is the first.

    Raises:
        TableError: If the table does not exist, or cannot be read.
    """
    names = table_names(path)
    if not names:
        raise TableError(f"{path.name} holds no tables.")
    chosen = part_named(table or 0, names, "table", path.name)
    plan = ReadPlan("sql", name, {"table": chosen})
    try:
        raw = exact(plan, read_source(plan))
    except Exception as error:
        raise TableError(f"The table {chosen!r} of {path.name} cannot be read: {error}.") from error
    raw.form = [f"table {chosen!r}"]
    if table is None:
        raw.note_others("table", names, chosen)
    return raw
