"""Empty databases of a PostgreSQL server, as servers share them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from postgres_server import PASSWORD, QUOTED
from psycopg.sql import SQL, Identifier

from taskweaver.server.databases.address import PostgresAddress


@contextmanager
def empty_database(boss: str) -> Iterator[PostgresAddress]:
    """Give the address of a new database on the server of an address of its superuser."""
    name = f"shared_{secrets.token_hex(4)}"
    with closing(psycopg.connect(boss, autocommit=True)) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        try:
            url = boss.replace(f":{QUOTED}@", "@").rpartition("/")[0]
            yield PostgresAddress(f"{url}/{name}", PASSWORD)
        finally:
            connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@contextmanager
def no_new_connections(
    connection: psycopg.Connection[tuple[Any, ...]], address: PostgresAddress
) -> Iterator[None]:
    """Let a database take no new connections for a while, by a superuser's connection."""
    switch = SQL("ALTER DATABASE {} ALLOW_CONNECTIONS ").format(Identifier(name_of(address)))
    connection.execute(switch + SQL("false"))
    try:
        yield
    finally:
        connection.execute(switch + SQL("true"))


@contextmanager
def outage(boss: str, address: PostgresAddress) -> Iterator[None]:
    """End all connections to a database, and let it take no new ones for a while."""
    end = (
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
        " WHERE datname = %s AND pid <> pg_backend_pid()"
    )
    with (
        closing(psycopg.connect(boss, autocommit=True)) as connection,
        no_new_connections(connection, address),
    ):
        connection.execute(end, [name_of(address)])
        yield


def name_of(address: PostgresAddress) -> str:
    """Return the name of a database."""
    return address.url.rpartition("/")[2]


def end_connections(address: PostgresAddress) -> int:
    """End all connections to a database, as its restart does; return their number."""
    with closing(psycopg.connect(address.url, password=address.password)) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return len(ended.fetchall())
