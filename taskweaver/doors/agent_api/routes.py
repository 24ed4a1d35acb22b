"""Addresses of the agent API, and the session and branch that a request is about."""

from __future__ import annotations

from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.agents.user_sessions import UserSessions
from taskweaver.server.operations import Call
from taskweaver.session.branches.branch import SessionBranch

PREFIX = "/agent/v1"
SESSIONS = f"{PREFIX}/sessions"
ONE = f"{SESSIONS}/{{session_id}}"
BRANCH = f"{ONE}/branches/{{branch}}"
OF_BRANCH = {"branch": "Name of the branch; main if it is left out"}


class AgentOperations:
    """Operations on the sessions of users."""

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions

    async def _own(self, call: Call) -> UserSessions:
        """Return the sessions of the caller."""
        return await self._sessions.of(call.user)

    async def _found(self, call: Call) -> UserConversation:
        """Return the session that a request is about.

        Raises:
            RequestRefused: If the user has no such session.
        """
        return await (await self._own(call)).conversation(call.path("session_id"))

    async def _branch(self, call: Call) -> SessionBranch:
        """Return the branch that the query of a request names; raises as `_found`.

        Raises:
            SessionError: If the branch does not exist.
        """
        return (await self._found(call)).branch(call.query("branch", "main"))


def last_seen(call: Call) -> str:
    """Return the id of the last event that a client saw: Last-Event-ID, else the query's after."""
    return call.request.headers.get("last-event-id", "") or call.query("after")
