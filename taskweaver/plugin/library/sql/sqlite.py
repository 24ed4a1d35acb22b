"""SQLite: the file is opened read-only, and an authorizer lets SQLite itself refuse the rest.

No guess is made from the text of a query.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from taskweaver.plugin.library.sql.statement import (
    NO_ROWS,
    ONLY_ONE,
    ONLY_READING,
    Statement,
    StatementResult,
    cannot_run,
    database_file,
    result_of,
)

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
_NEVER = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA})
_STEPS_BETWEEN_CHECKS = 10_000


def run_sqlite(file: str, statement: Statement) -> StatementResult:
    """Run a statement over an SQLite file.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is no database, or the statement cannot be run or is refused.
    """
    path = database_file(file)
    uri = f"{path.as_uri()}?mode={'ro' if statement.read_only else 'rw'}"
    with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        return _run(connection, statement, _tables(connection, path))


def _tables(connection: sqlite3.Connection, path: Path) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    try:
        return [name for (name,) in connection.execute(query)]
    except sqlite3.DatabaseError as error:
        hint = ""
        if path.suffix.lower() in {".duckdb", ".ddb"}:
            hint = " For DuckDB give duckdb:/// and the path."
        problem = f"{path.name!r} cannot be read as an SQLite database: {error}.{hint}"
        raise ValueError(problem) from error


def _run(
    connection: sqlite3.Connection, statement: Statement, tables: list[str]
) -> StatementResult:
    refused: list[int] = []
    deadline = time.monotonic() + statement.timeout_s

    def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        is_safe = action in _READING if statement.read_only else action not in _NEVER
        is_pragma = action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _READING_PRAGMAS
        if (is_safe and second != "load_extension") or is_pragma:
            return sqlite3.SQLITE_OK
        refused.append(action)
        return sqlite3.SQLITE_DENY

    connection.set_authorizer(authorize)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_CHECKS)
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute(statement.query)
            if statement.read_only and cursor.description is None:
                raise ValueError(NO_ROWS)
            answer = result_of(cursor, statement)
        connection.commit()
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise ValueError(
            _explain(str(error), statement, tables, is_refused=bool(refused))
        ) from error
    return answer


def _explain(text: str, statement: Statement, tables: list[str], *, is_refused: bool) -> str:
    if is_refused and statement.read_only:
        return ONLY_READING
    if is_refused:
        return "Other database files, extensions and settings cannot be reached from here."
    if "one statement" in text:
        return ONLY_ONE
    if text == "interrupted":
        return statement.too_slow
    if "no such table" in text:
        return cannot_run(text, tables)
    return cannot_run(f"The query cannot be run: {text}", tables)
