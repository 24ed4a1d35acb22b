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
_IDLE_LIMIT = "idle_in_transaction_session_timeout"
_LIMIT_OPTIONS = (
    f"-c statement_timeout=30s -c lock_timeout=2s -c {_IDLE_LIMIT}=20s"
    # The database frees the locks of a lost host after 25 s, instead of the system's two hours.
    " -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
)
_NOTIFIED_S = 3.0
_REFUSED_BY_POOLER = "unsupported startup parameter"
_POOLER = (
    "It is reached by a pooler of connections, such as PgBouncer, which loses locks and"
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


def connect(address: PostgresAddress) -> Connection:
    """Connect to a database; each statement outside of a transaction is one of its own.

    Raises:
        DatabaseLost: If the database does not answer, or refuses the login, or is reached by a
            pooler that gives its connection to others between transactions.
    """
    own = address.parts()
    settings: dict[str, Any] = {**_LIMITS, **own}
    settings["options"] = f"{_LIMIT_OPTIONS} {own.get('options', '')} -c search_path={SCHEMA}"
    if address.password:
        settings["password"] = address.password
    try:
        connection = psycopg.connect(autocommit=True, **settings)
        try:
            is_kept = _is_kept(connection, settings)
        except BaseException:
            connection.close()
            raise
    except psycopg.Error as error:
        problem = " ".join(str(error).split()).rstrip(".?")
        detail = f"{address.name} cannot be reached: {problem}."
        if _REFUSED_BY_POOLER in problem:
            detail += f" {_POOLER}"
        raise DatabaseLost(detail, is_undone=True) from error
    if not is_kept:
        connection.close()
        raise DatabaseLost(f"{address.name} cannot be used. {_POOLER}", is_undone=True)
    return connection


def _is_kept(connection: Connection, settings: dict[str, Any]) -> bool:
    """Return whether a connection keeps its process of the database, with settings and locks.

    That is certain where the process has the number that the connection tells. Poolers and other
    front ends have numbers of their own; one that left out the options of a connection would have
    the tables made in another schema, and no statement limited.
    """
    sql = (
        f"SELECT current_setting('search_path'), current_setting('{_IDLE_LIMIT}'), pg_backend_pid()"
    )
    path, limit, process = connection.execute(sql.encode()).fetchone() or ("", "0", 0)
    if path != SCHEMA or limit == "0":
        return False
    return process == connection.info.backend_pid or _keeps_locks(connection, settings)


def _keeps_locks(connection: Connection, settings: dict[str, Any]) -> bool:
    """Try the lock of a session and a notification between two connections.

    Behind a pooler the other connection may get the process that holds the lock, or this one may
    get the other's. Where the pooler is busy, the notification reaches neither.
    """
    key = secrets.randbits(62)
    channel = f"{SCHEMA}_{key}"
    with closing(psycopg.connect(autocommit=True, **settings)) as other:
        connection.execute("SELECT pg_advisory_lock(%s)", [key])
        connection.execute(f"LISTEN {channel}".encode())
        if other.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchone() != (False,):
            return False
        other.execute("BEGIN")  # it keeps its process until the end of the transaction
        other.execute("SELECT pg_notify(%s, %s)", [channel, ""])
        if connection.execute("SELECT pg_advisory_unlock(%s)", [key]).fetchone() != (True,):
            return False
        other.execute("COMMIT")
        notified = list(connection.notifies(timeout=_NOTIFIED_S, stop_after=1))
        connection.execute(f"UNLISTEN {channel}".encode())
        return bool(notified)
