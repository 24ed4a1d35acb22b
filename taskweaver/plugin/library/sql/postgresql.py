"""PostgreSQL: a transaction that only reads, a cursor that only takes queries, a time limit.

Nothing of an address is ever shown but its host and database: a password may be in it.
"""

from __future__ import annotations

import re
from contextlib import closing, suppress
from typing import Any
from urllib.parse import unquote

from taskweaver.plugin.library.sql.statement import (
    ONLY_ONE,
    ONLY_READING,
    Statement,
    StatementResult,
    cannot_run,
    library,
    result_of,
    tables_of,
)
from taskweaver.utils.redact import MASK

_CONNECT_TIMEOUT_S = 10
_READING = frozenset({"select", "with", "values", "table"})
# The server reads these, too, but not in a cursor.
_TELLING = frozenset({"explain", "show"})
# Stricter than the library, which takes what follows a bare @ or / in a password for a host, and
# then names it in its errors.
_ADDRESS = re.compile(
    r"postgresql://(?:[^:@/?#\s]*(?::[^@/?#\s]*)?@)?"
    r"(?:\[[0-9a-f:.]+\]|[\w.%-]*)(?::\d+)?(?:/[^@/?#\s]*)?(?:\?[^@/?#\s]*)?",
    re.IGNORECASE,
)
_NO_ADDRESS = (
    "This is no address of a PostgreSQL database; it looks like "
    "postgresql://user:password@host:5432/database, with signs such as @ or / in a password "
    "written as %40 or %2F."
)


def run_postgresql(url: str, statement: Statement) -> StatementResult:
    """Run a statement on a PostgreSQL server.

    Raises:
        ValueError: If the server cannot be reached, or the statement cannot be run or is refused.
        ImportError: If `psycopg` is not installed.
    """
    if not _ADDRESS.fullmatch(url):
        raise ValueError(_NO_ADDRESS)
    psycopg = library("psycopg", "PostgreSQL")
    with closing(_connect(url, statement)) as connection:
        try:
            return _run(connection, statement)
        except psycopg.Error as error:
            problem = _explain(error, connection, statement)
            # Without the cause: its text is the server's and may repeat what it was sent.
            raise ValueError(_without_password(problem, url)) from None


def _connect(url: str, statement: Statement) -> Any:
    import psycopg

    settings = {
        "statement_timeout": str(max(round(statement.timeout_s * 1000), 1)),
        "default_transaction_read_only": "on" if statement.read_only else "off",
    }
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    try:
        connection = psycopg.connect(url, connect_timeout=_CONNECT_TIMEOUT_S, options=options)
    except (psycopg.ProgrammingError, UnicodeError):
        # The library's own words would repeat parts of the address.
        raise ValueError(_NO_ADDRESS) from None
    except psycopg.Error as error:
        problem = " ".join(_without_password(str(error), url).split())
        raise ValueError(f"The PostgreSQL database cannot be reached: {problem}") from None
    connection.read_only = statement.read_only
    return connection


def _run(connection: Any, statement: Statement) -> StatementResult:
    query = statement.query.encode()
    if statement.read_only and _first_word(statement.query) not in _TELLING:
        # A cursor on the server takes one query and nothing else: no COPY, no SET, no second one.
        with connection.cursor("taskweaver") as cursor:
            return result_of(cursor.execute(query), statement)
    # Prepared, because the server prepares one statement only.
    with connection.execute(query, prepare=True) as cursor:
        answer = result_of(cursor, statement)
    if not statement.read_only:
        connection.commit()
    return answer


def _first_word(query: str) -> str:
    """Return the first word of a query that begins with one, else an empty text.

    No comment is looked through: the server might see another end of it.
    """
    found = re.match(r"\s*([a-z]+)", query, re.IGNORECASE)
    return found[1].lower() if found else ""


def _explain(error: Any, connection: Any, statement: Statement) -> str:
    import psycopg
    from psycopg import errors

    text = error.diag.message_primary or str(error).partition("\n")[0]
    if isinstance(error, errors.QueryCanceled):
        return statement.too_slow
    if "multiple commands" in text:
        return ONLY_ONE
    is_writing = isinstance(error, errors.ReadOnlySqlTransaction) or (
        isinstance(error, errors.FeatureNotSupported) and "CURSOR" in text
    )
    word = _first_word(statement.query)
    if statement.read_only and (is_writing or (word and word not in _READING | _TELLING)):
        return ONLY_READING
    with suppress(psycopg.Error):
        connection.rollback()
    return cannot_run(f"The query cannot be run: {text}", tables_of(connection, psycopg.Error))


def _without_password(text: str, url: str) -> str:
    """Replace possible passwords of the address wherever the text repeats a password."""
    login = url.partition("://")[2].partition("@")[0], url.partition("://")[2].rpartition("@")[0]
    secrets = {part.partition(":")[2] for part in login} | set(re.findall(r"password=([^&]*)", url))
    for secret in {form for found in secrets for form in (found, unquote(found)) if form}:
        text = text.replace(secret, MASK)
    return text
