"""Connections to the PostgreSQL database that several servers share."""

from __future__ import annotations

import secrets
from contextlib import closing
from typing import Any

import psycopg

from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.statements import DatabaseLost

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
_LOST_AFTER_S = 60
"""Most seconds for which a database may keep the locks of a host that is lost."""
_OPTIONS = " ".join(f"-c {name}={value}" for name, value in (_LIMITS_OF_TIME | _KEEPALIVES).items())
_NOTIFIED_S = 3.0
_REFUSED_BY_POOLER = "unsupported startup parameter"
_LOSES_LOCKS = "loses locks and notifications"
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
    """Return the settings of connections; each statement outside of a transaction is one."""
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
    except psycopg.Error as error:
        raise _unreachable(address, error) from error
    refuse_pooler(address, connection)
    return connection


def refuse_pooler(address: PostgresAddress, connection: Connection) -> None:
    """Close a new connection of a pooler that gives it to others between transactions.

    Raises:
        DatabaseLost: If it is one, or if the database does not answer.
    """
    try:
        loss = _loss(connection, settings_of(address))
        if loss:
            detail = f"{address.name} cannot be used. {_reached_by_pooler(loss)}"
            raise DatabaseLost(detail, is_undone=True)
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.Error):
            raise _unreachable(address, error) from error
        raise


def _unreachable(address: PostgresAddress, error: psycopg.Error) -> DatabaseLost:
    problem = " ".join(str(error).split()).rstrip(".?")
    detail = f"{address.name} cannot be reached: {problem}."
    if _REFUSED_BY_POOLER in problem:
        detail += f" {_reached_by_pooler('refuses the options of a connection')}"
    return DatabaseLost(detail, is_undone=True)


def _reached_by_pooler(problem: str) -> str:
    return (
        f"It is reached by a pooler of connections, such as PgBouncer, which {problem}: name"
        " PostgreSQL itself in server.database."
    )


def _loss(connection: Connection, settings: dict[str, Any]) -> str:
    """Return what a connection loses of settings and locks; empty if it loses nothing.

    PostgreSQL itself tells the number of the process that serves the connection. Poolers and other
    front ends have numbers of their own. One that leaves out the options of a connection would have
    the tables made in another schema, and statements without limits, unless the database has such
    settings of its own.
    """
    sql = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
    names = [*_LIMITS_OF_TIME, *_KEEPALIVES, "search_path"]
    rows = connection.execute(sql, [names]).fetchall()
    found = {str(name): str(setting) for name, setting in rows}
    lacking = [] if found["search_path"] == SCHEMA else ["search_path"]
    sql = "SELECT pg_backend_pid(), inet_client_addr() IS NULL"
    process, is_local = connection.execute(sql).fetchone() or (0, False)
    if process == connection.info.backend_pid and not lacking:
        return ""  # with the limits of the address, if it names any
    lacking += [name for name, most in _LIMITS_OF_TIME.items() if not 0 < int(found[name]) <= most]
    idle, interval, count = (int(found[name]) for name in _KEEPALIVES)
    if not is_local and idle + interval * count > _LOST_AFTER_S:
        lacking += _KEEPALIVES
    if lacking:
        return f"leaves out options of a connection ({', '.join(lacking)})"
    return _loss_of_locks(connection, settings)


def _loss_of_locks(connection: Connection, settings: dict[str, Any]) -> str:
    """Try the lock of a session and a notification between two connections.

    Behind a pooler the other connection may get the process that holds the lock, or this one may
    get the other's. Where the pooler is busy, the notification reaches neither. A pooler that does
    not reset connections keeps the lock of one that was closed.
    """
    key = secrets.randbits(62)
    channel = f"{SCHEMA}_{key}"
    with closing(psycopg.connect(**settings)) as other:
        connection.execute("SELECT pg_advisory_lock(%s)", [key])
        connection.execute(f"LISTEN {channel}".encode())
        if other.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchone() != (False,):
            return _LOSES_LOCKS
        other.execute("BEGIN")  # it keeps its process until the end of the transaction
        other.execute("SELECT pg_notify(%s, %s)", [channel, ""])
        if connection.execute("SELECT pg_advisory_unlock(%s)", [key]).fetchone() != (True,):
            return _LOSES_LOCKS
        other.execute("COMMIT")
        notified = list(connection.notifies(timeout=_NOTIFIED_S, stop_after=1))
        connection.execute(f"UNLISTEN {channel}".encode())
        if not notified:
            return _LOSES_LOCKS
        other.execute("SELECT pg_advisory_lock(%s)", [key])
    try:
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '2s'")
            connection.execute("SELECT pg_advisory_lock(%s)", [key])
    except psycopg.errors.LockNotAvailable:
        return "keeps the locks of connections that are closed (server_reset_query)"
    connection.execute("SELECT pg_advisory_unlock(%s)", [key])
    return ""
