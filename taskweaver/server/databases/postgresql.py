"""A database of the server in PostgreSQL, which several servers share."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import errors
from psycopg.sql import SQL, Composed, Identifier, Literal

from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.connecting import SCHEMA, Connection, connect
from taskweaver.server.databases.schemas import POSTGRESQL
from taskweaver.server.databases.statements import (
    AlreadyThere,
    DatabaseLost,
    Row,
    RunStatement,
    StatementOutcome,
)
from taskweaver.server.errors import RequestRefused, ServerError

# PostgreSQL's texts cannot hold this character; the other is one that no text is to hold.
_NUL, _STANDS_FOR_NUL = "\0", "\U0010ffff"
# Without the reason, which names hosts and users: clients without a token see this. The presence of
# the server writes the reason that it meets at the same address to the log.
_AWAY = "The database of the server does not answer."
_LONG_S = 1.0
_USERS, _MIGRATION = 0x5457_0001, 0x5457_0002
"""Classes of advisory locks: one for each user's index, and one for the change of the schema."""


class PostgresDatabase:
    """A connection to the database, made again when it was lost."""

    def __init__(self, address: PostgresAddress, server: str = "") -> None:
        """Connect; make the tables if there are none.

        Args:
            address: The database.
            server: Id under which other servers are told of changes; empty for a program that
                changes no index.

        Raises:
            ServerError: If it cannot be used, or is of a newer version.
        """
        self._address = address
        self._server = server
        self._lock = threading.Lock()
        self._is_committing = self._is_closed = False
        self._not_before = 0.0
        self._connection = connect(address)
        try:
            with self._explained():
                self._migrate(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def _migrate(self, connection: Connection) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise ServerError(f"{self._address.name} has the encoding {encoding}.", "Use UTF8.")
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", [_MIGRATION])
            table = connection.execute("SELECT to_regclass(%s)", [f"{SCHEMA}.version"]).fetchone()
            if table == (None,):
                # A schema that is there needs no right to make one.
                known = connection.execute("SELECT to_regnamespace(%s)", [SCHEMA]).fetchone()
                if known == (None,):
                    connection.execute(SQL("CREATE SCHEMA ") + Identifier(SCHEMA))
                connection.execute("CREATE TABLE version (number INTEGER NOT NULL)")
                connection.execute("INSERT INTO version VALUES (0)")
            ((version,),) = connection.execute("SELECT number FROM version").fetchall()
            if version > len(POSTGRESQL):
                detail = f"{self._address.name} is of a newer version."
                raise ServerError(detail, "Use that version of TaskWeaver.")
            for script in POSTGRESQL[version:]:
                connection.execute(script)
            connection.execute("UPDATE version SET number = %s", [len(POSTGRESQL)])

    def close(self) -> None:
        """Close the connection; safe to call again."""
        with self._lock:
            self._is_closed = True
            self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._explanation(error) from error

    def _explanation(self, error: psycopg.Error) -> ServerError:
        problem = error.diag.message_primary or " ".join(str(error).split())
        if isinstance(error, errors.UniqueViolation):
            return AlreadyThere(f"{self._address.name} has this already: {problem}.")
        if isinstance(error, errors.DiskFull):
            return RequestRefused(507, "disk-full", "There is no room on the database's disk.")
        if self._connection.closed:
            return DatabaseLost(_AWAY, is_undone=not self._is_committing)
        if isinstance(error, psycopg.OperationalError):  # a limit of time, or of connections
            busy = f"The database of the server is busy: {problem}."
            return DatabaseLost(busy, is_undone=not self._is_committing)
        is_denied = isinstance(error, errors.InsufficientPrivilege)
        hint = f"Grant the right to make the schema {SCHEMA}, or make it." if is_denied else ""
        return ServerError(f"{self._address.name} cannot be used: {problem}.", hint)

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Return the rows of a query."""
        with self._lock, self._explained():
            self._is_committing = False
            try:
                return self._run(sql, *values).rows
            except psycopg.OperationalError as error:
                self._connect_again(error)
                return self._run(sql, *values).rows

    @contextmanager
    def changing(
        self,
        user: str = "",
        *,
        is_flushed: bool = True,  # noqa: ARG002 - each is on disk when it ends
    ) -> Iterator[RunStatement]:
        """Begin a transaction."""
        with self._lock, self._explained():
            self._is_committing = False
            try:
                self._begin(user)
                yield self._run
                self._is_committing = True
                self._commit(user)
            except BaseException:
                with suppress(psycopg.Error):  # the first error is the one to tell
                    self._connection.rollback()
                raise

    def flusher(self) -> Callable[[], None]:
        """Return a function that does nothing: each transaction is on disk when it ends."""
        return lambda: None

    def _begin(self, user: str) -> None:
        """Begin, on a new connection where the last one was lost: nothing is changed yet."""
        # One number is given to one change at a time, and seen by others in this order.
        key = zlib.crc32(user.encode()) % (1 << 31)
        lock = f"; SELECT pg_advisory_xact_lock({_USERS}, {key})" if user else ""
        begin = f"BEGIN{lock}".encode()
        try:
            self._connection.execute(begin, prepare=False)
        except psycopg.OperationalError as error:
            self._connect_again(error)
            self._connection.execute(begin, prepare=False)

    def _connect_again(self, error: psycopg.OperationalError) -> None:
        """Connect where an error means that the connection was lost, else raise the error.

        At most half of the time is spent on a host that gives no answer at all.

        Raises:
            DatabaseLost: If the database does not answer, or was closed here.
        """
        if self._is_closed or not self._connection.closed:
            raise error
        begun = time.monotonic()
        if begun < self._not_before:
            raise DatabaseLost(_AWAY, is_undone=True)
        try:
            self._connection = connect(self._address)
        except DatabaseLost as lost:
            now = time.monotonic()
            self._not_before = 2 * now - begun if now - begun > _LONG_S else 0.0
            raise DatabaseLost(_AWAY, is_undone=True) from lost

    def _commit(self, user: str) -> None:
        end: SQL | Composed = SQL("COMMIT")
        if user and self._server:
            told = Literal(f"{self._server} {user}")
            end = SQL("NOTIFY ") + Identifier(SCHEMA) + SQL(", ") + told + SQL("; ") + end
        self._connection.execute(end, prepare=False)

    def _run(self, sql: str, *values: object) -> StatementOutcome:
        sent = [
            value.replace(_NUL, _STANDS_FOR_NUL) if isinstance(value, str) else value
            for value in values
        ]
        with self._connection.execute(sql.replace("?", "%s").encode(), sent) as cursor:
            rows = cursor.fetchall() if cursor.description else []
            return StatementOutcome([_with_nul(row) for row in rows], cursor.rowcount)


def _with_nul(row: Row) -> Row:
    return tuple(
        value.replace(_STANDS_FOR_NUL, _NUL) if isinstance(value, str) else value for value in row
    )
