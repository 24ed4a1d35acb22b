"""Connections to the PostgreSQL database that several servers share."""

from __future__ import annotations

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
