"""A PostgreSQL database that several servers share: connections, and presence of servers.

A server holds an advisory lock of its id on a connection of its own: the database frees it when the
server ends, however it ends. A server whose connection was cut takes its lock again on a new one,
and tells the others. The same connection gets the notifications of changes that they make.
"""

from __future__ import annotations

import logging
import secrets
import selectors
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import partial
from typing import Any

import psycopg
from psycopg import errors
from psycopg.sql import SQL, Composed, Identifier, Literal
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.statements import (
    AlreadyThere,
    DatabaseLost,
    Row,
    RunStatement,
    ServerDatabase,
    StatementOutcome,
)
from taskweaver.server.errors import RequestRefused, ServerError

_SCHEMAS = (
    """
    CREATE TABLE users (
      name TEXT COLLATE "C" PRIMARY KEY, role TEXT NOT NULL, quota TEXT NOT NULL,
      created_at TEXT NOT NULL, token_id TEXT NOT NULL UNIQUE, token_hash BYTEA NOT NULL
    );
    CREATE TABLE spending (
      "user" TEXT COLLATE "C" PRIMARY KEY REFERENCES users ON DELETE CASCADE,
      cost DOUBLE PRECISION NOT NULL, tokens BIGINT NOT NULL
    );
    CREATE TABLE audit (
      id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at TEXT COLLATE "C" NOT NULL,
      "user" TEXT NOT NULL, address TEXT NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL,
      outcome TEXT NOT NULL, request_id TEXT NOT NULL
    );
    CREATE INDEX audit_by_time ON audit (at);
    CREATE TABLE sessions (
      "user" TEXT NOT NULL, session TEXT NOT NULL, title TEXT NOT NULL,
      created_at TEXT COLLATE "C" NOT NULL, PRIMARY KEY ("user", session)
    );
    CREATE TABLE messages (
      rowid BIGINT GENERATED ALWAYS AS IDENTITY, "user" TEXT NOT NULL, id TEXT NOT NULL,
      session TEXT NOT NULL, branch TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
      state TEXT NOT NULL, round_id TEXT NOT NULL, answer TEXT NOT NULL, tokens BIGINT NOT NULL,
      cost DOUBLE PRECISION, created_at TEXT COLLATE "C" NOT NULL, server TEXT NOT NULL,
      PRIMARY KEY ("user", id)
    );
    CREATE INDEX messages_of_sessions ON messages ("user", session);
    CREATE INDEX open_messages ON messages ("user") WHERE state IN ('queued', 'running');
    CREATE TABLE changes (
      "user" TEXT NOT NULL, number BIGINT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL,
      PRIMARY KEY ("user", number)
    )
    """,
)
"""For each version the statements that lead to it: accounts, and the indexes of all users."""

SCHEMA = "taskweaver"
"""Name of the tables' schema, of the channel of notifications, and of the program."""
Connection = psycopg.Connection[tuple[Any, ...]]

# A lock that another server keeps holds up a change, and those of the same user behind it, for two
# seconds at most each; a server that stands still in a transaction keeps it for twenty.
_LIMITS_OF_TIME = {
    "statement_timeout": 30_000,
    "lock_timeout": 2_000,
    "idle_in_transaction_session_timeout": 20_000,
}
"""In milliseconds, as in `pg_settings`."""

# The database frees the locks of a lost host after 25 s, instead of the system's two hours.
_KEEPALIVES = {"tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3}
_OPTIONS = " ".join(f"-c {name}={value}" for name, value in (_LIMITS_OF_TIME | _KEEPALIVES).items())
_REFUSED_BY_POOLER = "unsupported startup parameter"
_POOLED = (
    "It is reached by a pooler of connections, such as PgBouncer, which loses settings, locks or"
    " notifications: name PostgreSQL itself in server.database."
)
# Requests wait for the database: a host that gives no answer is given up soon.
_LIMITS: dict[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 5_000,
    "application_name": SCHEMA,
    "client_encoding": "UTF8",
}


def settings_of(address: PostgresAddress) -> dict[str, Any]:
    """Return the settings of connections.

    Each statement outside of a transaction is a transaction of its own (`autocommit`).
    """
    own = address.parts()
    options = f"{_OPTIONS} {own.get('options', '')} -c search_path={SCHEMA}"
    settings = {**_LIMITS, **own, "options": options, "autocommit": True}
    return settings | ({"password": address.password} if address.password else {})


def connect(address: PostgresAddress) -> Connection:
    """Connect to a database.

    Raises:
        DatabaseLost: If the database does not answer, or refuses the login, or as `refuse_pooler`.
    """
    try:
        connection = psycopg.connect(**settings_of(address))
        refuse_pooler(address, connection)
    except psycopg.Error as error:
        problem = " ".join(str(error).split()).rstrip(".?")
        detail = f"{address.name} cannot be reached: {problem}."
        if _REFUSED_BY_POOLER in problem:
            detail += f" {_POOLED}"
        raise DatabaseLost(detail, is_undone=True) from error
    return connection


def refuse_pooler(address: PostgresAddress, connection: Connection) -> None:
    """Close a new connection of a pooler, which may lose settings, locks and notifications.

    PostgreSQL itself tells the number of the process that serves the connection. Poolers have
    numbers of their own, and may leave out the options of a connection: the tables would be made
    in another schema, and statements have no limits.

    Raises:
        DatabaseLost: If it is one, or if the database does not answer.
    """
    sql = "SELECT pg_backend_pid(), current_setting('search_path')"
    try:
        found = connection.execute(sql).fetchone()
        if found != (connection.info.backend_pid, SCHEMA):
            detail = f"{address.name} cannot be used. {_POOLED}"
            raise DatabaseLost(detail, is_undone=True)
    except BaseException:
        connection.close()
        raise


_AWAY = (
    "The database of the server does not answer, or takes no further connection (max_connections,"
    " or CONNECTION LIMIT of a role)."
)
"""Without the reason, which names hosts and users: clients without a token see this. The presence
of the server writes the reason that it meets at the same address to the log."""
_LONGEST_WAIT_S = 5.0
"""For a connection, and for other changes of a user."""

# PostgreSQL's texts cannot hold this character; the other is one that no text is to hold.
_NUL, _STANDS_FOR_NUL = "\0", "\U0010ffff"
_USERS, _MIGRATION = 0x5457_0001, 0x5457_0002
"""Classes of advisory locks: one for each user's index, and one for the change of the schema."""
_MOST_AT_ONCE = 8
"""Most connections, and most threads of the event loop's calls."""
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # the presence tells why, and once


class PostgresDatabase:
    """A database with connections that are made on demand, and again after a loss.

    Attributes:
        threads: Threads for calls from the event loop.
    """

    def __init__(self, address: PostgresAddress, server: str = "") -> None:
        """Connect, and make the tables if there are none.

        Args:
            address: The database.
            server: Id under which other servers are told of changes; empty for a program that
                changes no index.

        Raises:
            ServerError: If it cannot be used, or is of a newer version.
        """
        self._address = address
        self._server = server
        self._turns: dict[str, threading.Lock] = {}
        with closing(connect(address)) as connection:
            try:
                self._migrate(connection)
            except psycopg.Error as error:
                raise self._explanation(connection, error) from error
        self.threads = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="database")
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            kwargs=settings_of(address),
            min_size=0,
            max_size=_MOST_AT_ONCE,
            timeout=_LONGEST_WAIT_S,
            reconnect_timeout=1.0,  # the next request connects again
            configure=partial(refuse_pooler, address),
            check=ConnectionPool.check_connection,
            open=True,
        )

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
            if version > len(_SCHEMAS):
                detail = f"{self._address.name} is of a newer version."
                raise ServerError(detail, "Use that version of TaskWeaver.")
            for script in _SCHEMAS[version:]:
                connection.execute(script)
            connection.execute("UPDATE version SET number = %s", [len(_SCHEMAS)])

    def close(self) -> None:
        """Close the connections. Safe to call again."""
        self.threads.shutdown()
        self._pool.close()

    @contextmanager
    def _lent(self) -> Iterator[Connection]:
        """Lend a connection, in working order. An error in the block rolls back."""
        try:
            with self._pool.connection() as connection:
                yield connection
        except (PoolTimeout, PoolClosed) as error:
            raise DatabaseLost(_AWAY, is_undone=True) from error

    def _explanation(
        self, connection: Connection, error: psycopg.Error, *, is_undone: bool = True
    ) -> ServerError:
        problem = error.diag.message_primary or " ".join(str(error).split())
        if isinstance(error, errors.UniqueViolation):
            return AlreadyThere(f"{self._address.name} has this already: {problem}.")
        if isinstance(error, errors.DiskFull):
            return RequestRefused(507, "disk-full", "There is no room on the database's disk.")
        if connection.closed:
            return DatabaseLost(_AWAY, is_undone=is_undone)
        if isinstance(error, psycopg.OperationalError):  # a limit of time, or of connections
            return _busy(problem, is_undone=is_undone)
        is_denied = isinstance(error, errors.InsufficientPrivilege)
        hint = f"Grant the right to make the schema {SCHEMA}, or make it." if is_denied else ""
        return ServerError(f"{self._address.name} cannot be used: {problem}.", hint)

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Return the rows of a query."""
        with self._lent() as connection:
            try:
                return _run(connection, sql, *values).rows
            except psycopg.Error as error:
                raise self._explanation(connection, error) from error

    @contextmanager
    def changing(self, user: str = "") -> Iterator[RunStatement]:
        """Begin a transaction."""
        is_committing = False  # once it is sent, the change may have been made
        with self._turn(user) if user else nullcontext(), self._lent() as connection:
            try:
                _begin(connection, user)
                yield partial(_run, connection)
                is_committing = True
                self._commit(connection, user)
            except psycopg.Error as error:
                raise self._explanation(connection, error, is_undone=not is_committing) from error

    @contextmanager
    def _turn(self, user: str) -> Iterator[None]:
        """Wait for a user's earlier changes: one connection at most waits for the user's lock.

        Raises:
            DatabaseLost: If they take long.
        """
        turn = self._turns.setdefault(user, threading.Lock())
        if not turn.acquire(timeout=_LONGEST_WAIT_S):
            raise _busy("other changes of this user wait", is_undone=True)
        try:
            yield
        finally:
            turn.release()

    def _commit(self, connection: Connection, user: str) -> None:
        end: SQL | Composed = SQL("COMMIT")
        if user and self._server:
            told = Literal(f"{self._server} {user}")
            end = SQL("NOTIFY ") + Identifier(SCHEMA) + SQL(", ") + told + SQL("; ") + end
        connection.execute(end, prepare=False)


def _busy(problem: str, *, is_undone: bool) -> DatabaseLost:
    return DatabaseLost(f"The database of the server is busy: {problem}.", is_undone=is_undone)


def _begin(connection: Connection, user: str) -> None:
    # One number is given to one change at a time, and seen by others in this order.
    key = zlib.crc32(user.encode()) % (1 << 31)
    lock = f"; SELECT pg_advisory_xact_lock({_USERS}, {key})" if user else ""
    connection.execute(f"BEGIN{lock}".encode(), prepare=False)


def _run(connection: Connection, sql: str, *values: object) -> StatementOutcome:
    sent = _replaced(values, _NUL, _STANDS_FOR_NUL)
    with connection.execute(sql.replace("?", "%s").encode(), sent) as cursor:
        rows = cursor.fetchall() if cursor.description else []
        found = [tuple(_replaced(row, _STANDS_FOR_NUL, _NUL)) for row in rows]
        return StatementOutcome(found, cursor.rowcount)


def _replaced(values: Iterable[object], old: str, new: str) -> list[object]:
    return [value.replace(old, new) if isinstance(value, str) else value for value in values]


_AGAIN_S = 0.5
_SETTLED_S = 6.0
"""Time for which a lock must be free until its server counts as ended: longer than one that lives
needs to connect again."""
_FREE = "SELECT id::text FROM unnest(?::bigint[]) AS id WHERE pg_try_advisory_xact_lock_shared(id)"
_THREAD = "server-presence"


class ServerPresence:
    """Shows that this server lives, and notices changes and ends of servers. Needs `close`.

    Attributes:
        id: Id of this server, a number.
    """

    def __init__(self, address: PostgresAddress, log: TelemetryLogger) -> None:
        """Enter.

        Raises:
            DatabaseLost: If the database does not answer.
        """
        self.id = str(secrets.randbits(62))
        self._address = address
        self._log = log
        self._listeners: dict[str, Callable[[], None]] = {}
        self._free_since: dict[str, float] = {}
        self._has_lock = False
        self._is_closing = threading.Event()
        with ExitStack() as opened:
            connection = opened.enter_context(closing(connect(address)))
            self._enter(connection)
            self._closing_sent, self._closing_received = socket.socketpair()
            opened.callback(self._close_sockets)
            self._thread = threading.Thread(target=self._run, args=[connection], name=_THREAD)
            self._thread.start()
            opened.pop_all()

    def close(self) -> None:
        """Leave: open messages of this server count as cut from now on. Safe to call again."""
        if self._is_closing.is_set():
            return
        self._is_closing.set()
        self._closing_sent.send(b"x")
        self._thread.join()
        self._close_sockets()

    def _close_sockets(self) -> None:
        self._closing_sent.close()
        self._closing_received.close()

    def ended(self, database: ServerDatabase, servers: Sequence[str]) -> list[str]:
        """Return the given servers that have ended: the locks stay free.

        The first call that finds a lock free remembers when; a later one returns its server.

        Args:
            database: A connection to the database that they share.
            servers: Their ids.
        """
        free = {server for (server,) in database.rows(_FREE, [int(server) for server in servers])}
        now = time.monotonic()
        for server in servers:
            if server in free:
                self._free_since.setdefault(server, now)
            else:
                self._free_since.pop(server, None)
        return sorted(one for one in free if now - self._free_since.get(one, now) >= _SETTLED_S)

    def listen(self, user: str, on_change: Callable[[], None]) -> None:
        """Call a function when another server may have changed the index of a user."""
        self._listeners[user] = on_change

    def unlisten(self, user: str) -> None:
        """Call the function of a user no longer."""
        self._listeners.pop(user, None)

    def _enter(self, connection: Connection) -> None:
        try:
            connection.execute(f"LISTEN {SCHEMA}".encode())
            self._take_lock(connection)
        except BaseException:
            connection.close()
            raise

    def _take_lock(self, connection: Connection) -> None:
        # After a lost connection the database may hold the lock for the one before, for a while.
        taken = connection.execute("SELECT pg_try_advisory_lock(%s)", [int(self.id)]).fetchone()
        self._has_lock = taken == (True,)
        if self._has_lock:
            connection.execute("SELECT pg_notify(%s, %s)", [SCHEMA, self.id])

    def _run(self, connection: Connection) -> None:
        while not self._is_closing.is_set():
            try:
                with connection:
                    self._pass_on(connection)
            except (psycopg.Error, OSError) as error:
                self._log.warning(f"the connection for changes of other servers is lost: {error}")
                connection = self._entered_again() or connection
        connection.close()

    def _entered_again(self) -> Connection | None:
        """Return a new connection, or None at the server's end."""
        reason = ""
        while not self._is_closing.is_set():
            try:
                connection = connect(self._address)
                self._enter(connection)
            except (psycopg.Error, DatabaseLost) as error:
                if str(error) != reason:
                    reason = str(error)
                    self._log.warning(reason)
                self._is_closing.wait(_AGAIN_S)
                continue
            self._free_since.clear()  # servers may have told that they are there again
            for user in tuple(self._listeners):  # they may have missed a change
                self._call(user)
            self._log.info("the connection for changes of other servers is there again")
            return connection
        return None

    def _call(self, user: str) -> None:
        on_change = self._listeners.get(user)
        if on_change is None:
            return
        try:
            on_change()
        except Exception:  # noqa: BLE001 - one that fails must not end the presence
            self._log.exception("a change of another server was not passed on to a reader")

    def _pass_on(self, connection: Connection) -> None:
        """Pass on foreign changes until this server leaves or the connection is lost."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            selector.register(self._closing_received, selectors.EVENT_READ)
            while not self._is_closing.is_set():
                if not self._has_lock:
                    self._take_lock(connection)
                changed = {note.payload for note in connection.notifies(timeout=0)}
                for server, _, user in (payload.partition(" ") for payload in changed):
                    self._free_since.pop(server, None)
                    if server != self.id:
                        self._call(user)
                selector.select(None if self._has_lock else _AGAIN_S)
