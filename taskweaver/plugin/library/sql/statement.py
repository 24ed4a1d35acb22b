"""Statements for database engines, their results, and the error messages all engines share."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.utils.system.installation import install_command

_DATABASE_FILES = frozenset({".db", ".db3", ".sqlite", ".sqlite3", ".sq3", ".duckdb", ".ddb"})


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement and the limits.

    If `read_only`, whatever does more than read is refused.
    """

    query: str
    max_rows: int
    timeout_s: float
    read_only: bool = True

    @property
    def too_slow(self) -> str:
        """Error message for a statement over its time limit."""
        return f"The query took longer than {self.timeout_s:g} s and was stopped."


@dataclass(frozen=True, slots=True)
class StatementResult:
    """Result of a statement.

    Attributes:
        names: The columns.
        rows: The rows; one more than the limit when there are more.
        changed: Rows changed by a statement that returns none; None when it returns rows.
    """

    names: list[str]
    rows: list[tuple[object, ...]]
    changed: int | None = None


ONLY_READING = (
    "Only statements that read are allowed: one SELECT, WITH, VALUES or EXPLAIN. "
    "(The plugin is configured with read_only: true.)"
)
ONLY_ONE = "Only one statement at a time is allowed; give the queries one after another."
NO_ROWS = "The query returns no rows: give one SELECT statement."


_TABLES = (
    "SELECT table_name FROM information_schema.tables"
    " WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1 LIMIT 50"
)


def library(name: str, database: str) -> Any:
    """Import the library for a kind of database.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        command = install_command("sql")
        raise ImportError(f"Reading {database} needs the library {name}: {command}") from error


def result_of(cursor: Any, statement: Statement) -> StatementResult:
    """Return the result of a statement that a cursor has run."""
    if cursor.description is None:
        return StatementResult([], [], max(cursor.rowcount, 0))
    names = [str(column[0]) for column in cursor.description]
    return StatementResult(names, cursor.fetchmany(statement.max_rows + 1))


def tables_of(connection: Any, failure: type[Exception]) -> list[str]:
    """Return the tables of a database for an error message, or nothing if listing fails too."""
    try:
        return [str(name) for (name,) in connection.execute(_TABLES).fetchall()]
    except failure:
        return []


def cannot_run(problem: str, tables: Sequence[str]) -> str:
    """Say why a query cannot be run, and which tables there are."""
    problem = f"{problem[:1].upper()}{problem[1:]}".rstrip(".")
    return f"{problem}. The tables are: {', '.join(tables) or 'none'}."


def database_file(text: str) -> Path:
    """Return the absolute path of a database file.

    Raises:
        FileNotFoundError: If there is none; names those that are there.
    """
    path = Path(text).expanduser()
    if path.is_file():
        return path.resolve()
    folder = path.parent
    beside = folder.iterdir() if folder.is_dir() else ()
    names = sorted(p.name for p in beside if p.suffix.lower() in _DATABASE_FILES)[:10]
    there = f" Database files there: {', '.join(names)}." if names else ""
    raise FileNotFoundError(f"There is no database file {str(path)!r}.{there}")
