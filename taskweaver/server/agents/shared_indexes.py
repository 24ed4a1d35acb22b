"""The indexes of users in a PostgreSQL database that several servers share."""

from __future__ import annotations

from pathlib import Path

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.agents.index import AgentIndex
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.postgresql import PostgresDatabase
from taskweaver.server.databases.presence import ServerPresence


class SharedIndexes:
    """Indexes of all users in one set of tables."""

    def __init__(self, address: PostgresAddress, log: TelemetryLogger) -> None:
        """Connect, and show other servers that this one lives.

        Raises:
            ServerError: If the database cannot be used.
        """
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
