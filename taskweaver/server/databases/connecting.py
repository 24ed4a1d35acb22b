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
_OPTIONS = (
    f"-c search_path={SCHEMA} -c statement_timeout=30s -c lock_timeout=2s"
    " -c idle_in_transaction_session_timeout=20s"
    # The database frees the locks of a lost host after 25 s, instead of the system's two hours.
    " -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
)
_LIMITS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": SCHEMA,
    "client_encoding": "UTF8",
}


def connect(address: PostgresAddress) -> Connection:
    """Connect to a database; each statement outside of a transaction is one of its own.

    Raises:
        DatabaseLost: If the database does not answer, or refuses the login.
    """
    own = address.parts()
    settings: dict[str, Any] = {**_LIMITS, **own}
    settings["options"] = f"{_OPTIONS} {own.get('options', '')}".strip()
    if address.password:
        settings["password"] = address.password
    try:
        return psycopg.connect(autocommit=True, **settings)
    except psycopg.Error as error:
        problem = " ".join(str(error).split()).rstrip(".?")
        detail = f"{address.name} cannot be reached: {problem}."
        raise DatabaseLost(detail, is_undone=True) from error
