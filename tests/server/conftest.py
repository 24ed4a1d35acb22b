"""Places for the server's data: a folder, or a database of a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import postgres_server
from shared_database import empty_database

from taskweaver.server.databases.address import PostgresAddress

Place = Path | PostgresAddress


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run tests that are coroutines in a loop of asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
def boss() -> Iterator[str]:
    """Give the address of a PostgreSQL server's superuser."""
    with postgres_server() as address:
        yield address


@pytest.fixture
def database(boss: str) -> Iterator[PostgresAddress]:
    with empty_database(boss) as address:
        yield address


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Give a folder or an empty database."""
    if request.param == "sqlite":
        return tmp_path
    found: PostgresAddress = request.getfixturevalue("database")
    return found
