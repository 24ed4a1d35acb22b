"""Poolers between the server and PostgreSQL are refused."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import closing

import pytest
from shared_database import relayed

from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.postgresql import connect
from taskweaver.server.databases.statements import DatabaseLost

pytestmark = pytest.mark.postgres

_KEY = b"K" + struct.pack("!i", 12)


def unchanged(received: bytes) -> bytes:
    return received


def with_own_number(received: bytes) -> bytes:
    """Return an answer with another number of the process."""
    at = received.find(_KEY)
    number = at + len(_KEY)
    return received if at < 0 else received[:number] + b"\0\0\0\1" + received[number + 4 :]


def without_options(received: bytes) -> bytes:
    """Return a request whose options are no longer those of the server."""
    return received.replace(b"search_path=taskweaver", b"search_path=elsewhere1")


@pytest.mark.parametrize(
    ("ask", "answer"), [(without_options, unchanged), (unchanged, with_own_number)]
)
def test_pooler_is_refused(
    database: PostgresAddress, ask: Callable[[bytes], bytes], answer: Callable[[bytes], bytes]
) -> None:
    refused = pytest.raises(DatabaseLost, match=r"such as PgBouncer.*name PostgreSQL itself")
    with relayed(database, ask, answer) as behind, refused:
        connect(behind)


def test_options_of_an_address_are_kept(database: PostgresAddress) -> None:
    options = "-c%20search_path%3Dpublic%20-c%20statement_timeout%3D7s"
    own = PostgresAddress(f"{database.url}?options={options}", database.password)
    with closing(connect(own)) as connection:
        shown = "SELECT current_setting('statement_timeout'), current_setting('search_path')"
        assert connection.execute(shown).fetchone() == ("7s", "taskweaver")
