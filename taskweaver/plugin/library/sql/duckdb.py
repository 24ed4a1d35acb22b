"""DuckDB: the file is opened read-only, and no other file or address can be reached."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from taskweaver.plugin.library.sql.statement import (
    NO_ROWS,
    ONLY_ONE,
    ONLY_READING,
    Statement,
    StatementResult,
    cannot_run,
    database_file,
    library,
    result_of,
    tables_of,
)

# Neither `read_csv('/etc/passwd')` nor COPY TO, ATTACH, INSTALL or a Python variable's content;
# and no statement can switch that off.
_SEALED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}
_READING = frozenset({"SELECT", "EXPLAIN", "PRAGMA"})


def run_duckdb(file: str, statement: Statement) -> StatementResult:
    """Run a statement over a DuckDB file.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is no database, or the statement cannot be run or is refused.
        ImportError: If `duckdb` is not installed.
    """
    path = database_file(file)
    duckdb = library("duckdb", "DuckDB")
    with closing(_open(path, read_only=statement.read_only)) as connection:
        try:
            _check(connection.extract_statements(statement.query), statement)
            with _interrupting(connection.interrupt, statement.timeout_s):
                return result_of(connection.execute(statement.query), statement)
        except duckdb.InterruptException as error:
            raise ValueError(statement.too_slow) from error
        except duckdb.Error as error:
            raise ValueError(_explain(error, connection, statement)) from error


def _open(path: Path, *, read_only: bool) -> Any:
    import duckdb

    try:
        return duckdb.connect(str(path), read_only=read_only, config=dict(_SEALED))
    except duckdb.Error as error:
        problem = str(error).partition("\n")[0]
        raise ValueError(
            f"{path.name!r} cannot be opened as a DuckDB database: {problem}"
        ) from error


def _check(statements: list[Any], statement: Statement) -> None:
    if not statements:
        raise ValueError(NO_ROWS)
    if len(statements) > 1:
        raise ValueError(ONLY_ONE)
    # The file is open for reading only, so this is for the sake of the message.
    if statement.read_only and statements[0].type.name not in _READING:
        raise ValueError(ONLY_READING)


@contextmanager
def _interrupting(interrupt: Callable[[], None], timeout_s: float) -> Iterator[None]:
    """Interrupt the query from another thread when the time is over."""
    timer = threading.Timer(timeout_s, interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _explain(error: Exception, connection: Any, statement: Statement) -> str:
    import duckdb

    text = str(error).partition("\n")[0].partition(": ")[2] or str(error)
    if isinstance(error, duckdb.PermissionException):
        return f"Only the database itself can be reached: {text}."
    if "read-only mode" in text and statement.read_only:
        return ONLY_READING
    return cannot_run(f"The query cannot be run: {text}", tables_of(connection, duckdb.Error))
