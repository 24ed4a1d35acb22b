"""The indexes of users in a PostgreSQL database that several servers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.agents.index import AgentIndex
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.postgresql import PostgresDatabase
from taskweaver.server.databases.presence import ServerPresence

_SETTLED_S = 10.0
"""Time after the start of the database in which servers that live take their locks again."""
_ENDED = (
    "SELECT id::text FROM unnest(?::bigint[]) AS id"
    " WHERE pg_postmaster_start_time() < now() - make_interval(secs => ?)"
    " AND pg_try_advisory_xact_lock_shared(id)"
)


class SharedIndexes:
    """Indexes of all users in one set of tables.

    Attributes:
        is_shared: True.
        id: Id of this server.
    """

    is_shared = True

    def __init__(self, address: PostgresAddress, log: TelemetryLogger) -> None:
        """Connect, and show other servers that this one lives.

        Raises:
            ServerError: If the database cannot be used.
        """
        self._presence = ServerPresence(address, log)
        self.id = self._presence.id
        try:
            self._database = PostgresDatabase(address, self.id)
        except BaseException:
            self._presence.close()
            raise

    def of(self, user: str, folder: Path) -> AgentIndex:  # noqa: ARG002 - it is in no folder
        """Return the index of a user."""
        return AgentIndex(self._database, self, user)

    def ended(self, servers: Sequence[str]) -> list[str]:
        """Return those of some other servers that have ended."""
        rows = self._database.rows(_ENDED, [int(server) for server in servers], _SETTLED_S)
        return [server for (server,) in rows]

    def listen(self, user: str, on_change: Callable[[], None]) -> None:
        """Call a function when another server may have changed the index of a user."""
        self._presence.listen(user, on_change)

    def unlisten(self, user: str) -> None:
        """Call the function of a user no longer."""
        self._presence.unlisten(user)

    def close(self) -> None:
        """Close the connections; the open messages of this server count as cut from now on."""
        self._presence.close()
        self._database.close()
