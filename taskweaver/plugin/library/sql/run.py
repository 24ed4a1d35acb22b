"""Finds the engine for a database by the address."""

from __future__ import annotations

from taskweaver.plugin.library.sql.duckdb import run_duckdb
from taskweaver.plugin.library.sql.postgresql import run_postgresql
from taskweaver.plugin.library.sql.sqlite import run_sqlite
from taskweaver.plugin.library.sql.statement import Statement, StatementResult

_FILE_ENGINES = {"sqlite": run_sqlite, "duckdb": run_duckdb}


def run_sql(database: str, statement: Statement) -> StatementResult:
    """Run a statement.

    Args:
        database: Path of an SQLite file, or ``sqlite:///path``, ``duckdb:///path`` (a fourth slash
            begins an absolute path) or ``postgresql://user:password@host:port/database``.
        statement: The statement and its limits.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the address has another form, the database cannot be opened, or the
            statement cannot be run or is refused.
        ImportError: If the library for the database is not installed.
    """
    scheme, separator, rest = database.partition("://")
    if not separator:
        return run_sqlite(database, statement)
    scheme = scheme.lower()
    if scheme in {"postgresql", "postgres"}:
        return run_postgresql(f"postgresql://{rest}", statement)
    if scheme in _FILE_ENGINES:
        if not rest.startswith("/") or rest == "/":
            raise ValueError(f"Write three slashes and the path of the file: {scheme}:///path")
        return _FILE_ENGINES[scheme](rest[1:], statement)
    # The rest of the address is not repeated: there may be a password in it.
    raise ValueError(
        f"There is no engine for {scheme[:20]!r}; the address begins with sqlite:///, duckdb:/// "
        "or postgresql://, or is the path of an SQLite file."
    )
