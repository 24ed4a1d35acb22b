"""Connections to the PostgreSQL database that several servers share."""

from __future__ import annotations

from typing import Any

import psycopg

from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.statements import DatabaseLost

SCHEMA = "taskweaver"
"""Name of the tables' schema, of the channel of notifications, and of the program."""
Connection = psycopg.Connection[tuple[Any, ...]]

# A lock that another server keeps holds up a change, and all users of its connection behind it, for
# two seconds at most; a server that stands still in a transaction keeps it for twenty.
_LIMIT_OPTIONS = (
    "-c statement_timeout=30s -c lock_timeout=2s"
    " -c idle_in_transaction_session_timeout=20s"
    # The database frees the locks of a lost host after 25 s, instead of the system's two hours.
    " -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
)
_REFUSED_BY_POOLER = "unsupported startup parameter"
_POOLER = (
    "It is reached by a pooler of connections, such as PgBouncer, which loses locks and"
    " notifications: name PostgreSQL itself in server.database."
)
# Who waits for the database holds up all requests: a host that gives no answer is given up soon.
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
            pooler of connections.
    """
    own = address.parts()
    settings: dict[str, Any] = {**_LIMITS, **own}
    settings["options"] = f"{_LIMIT_OPTIONS} {own.get('options', '')} -c search_path={SCHEMA}"
    if address.password:
        settings["password"] = address.password
    try:
        connection = psycopg.connect(autocommit=True, **settings)
        try:
            is_direct = _is_direct(connection)
        except BaseException:
            connection.close()
            raise
    except psycopg.Error as error:
        problem = " ".join(str(error).split()).rstrip(".?")
        detail = f"{address.name} cannot be reached: {problem}."
        if _REFUSED_BY_POOLER in problem:
            detail += f" {_POOLER}"
        raise DatabaseLost(detail, is_undone=True) from error
    if not is_direct:
        connection.close()
        raise DatabaseLost(f"{address.name} cannot be used. {_POOLER}", is_undone=True)
    return connection


def _is_direct(connection: Connection) -> bool:
    """Return whether no pooler stands in between.

    It has numbers of its own for its connections. One that leaves out the options of a connection
    would have the tables made in another schema, and no statement limited.
    """
    asked = connection.execute("SELECT pg_backend_pid(), current_setting('search_path')")
    return asked.fetchone() == (connection.info.backend_pid, SCHEMA)
