"""Owner of the databases with the indexes of users: files, or one database of several servers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.agents.index import AgentIndex
from taskweaver.server.databases.address import PostgresAddress, SharedDatabaseConfig
from taskweaver.server.databases.sqlite import SQLITE_INDEX, SqliteDatabase
from taskweaver.server.databases.statements import ServerDatabase


class AgentIndexes(Protocol):
    """The indexes of users. Close it after them."""

    def of(self, user: str, folder: Path) -> AgentIndex:
        """Return the index of a user, whose sessions are in a folder.

        Raises:
            ServerError: If it cannot be used.
        """

    def close(self) -> None:
        """Close the databases; safe to call again."""


class OnlyServer:
    """The one server of some files; another one that they name as they are opened has ended.

    Attributes:
        id: Its id.
        is_shared: False.
    """

    is_shared = False

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)

    def ended(self, database: ServerDatabase, servers: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Return all other servers."""
        return list(servers)

    def listen(self, user: str, on_change: Callable[[], None]) -> None:
        """Do nothing: no other server changes an index."""

    def unlisten(self, user: str) -> None:
        """Do nothing."""


class FileIndexes:
    """Indexes in one file for each user, which one server uses."""

    def __init__(self, folder: Path | None = None) -> None:
        """Keep the files in a folder of one user; None keeps each beside the user's sessions."""
        self._folder = folder
        self._server = OnlyServer()
        self._databases: list[SqliteDatabase] = []

    def of(self, user: str, folder: Path) -> AgentIndex:  # noqa: ARG002 - the folder is the user's
        """Return the index in a folder."""
        path = (self._folder or folder) / "agent.sqlite"
        database = SqliteDatabase(path, "The index", SQLITE_INDEX)
        try:
            index = AgentIndex(database, self._server)
        except BaseException:
            database.close()
            raise
        self._databases.append(database)
        return index

    def close(self) -> None:
        """Close the files."""
        for database in self._databases:
            database.close()


class SharedIndexes:
    """Indexes of all users in one set of tables."""

    def __init__(self, address: PostgresAddress, log: TelemetryLogger) -> None:
        """Connect, and show other servers that this one lives.

        Raises:
            ServerError: If the database cannot be used.
        """
        from taskweaver.server.databases.postgresql import PostgresDatabase
        from taskweaver.server.databases.presence import ServerPresence

        self._presence = ServerPresence(address, log)
        try:
            self._database = PostgresDatabase(address, self._presence.id)
        except BaseException:
            self._presence.close()
            raise

    def of(self, user: str, folder: Path) -> AgentIndex:  # noqa: ARG002 - it is in no folder
        """Return the index of a user."""
        return AgentIndex(self._database, self._presence, user)

    def close(self) -> None:
        """Close the connections; the open messages of this server count as cut from now on."""
        self._presence.close()
        self._database.close()


def open_indexes(config: SharedDatabaseConfig, log: TelemetryLogger) -> AgentIndexes:
    """Return the indexes of a project: in the database that it names, else in files.

    Raises:
        ServerError: If the database cannot be used.
    """
    if config.address is None:
        return FileIndexes()
    return SharedIndexes(config.address, log)
