"""Addresses of the agent API, and the session and branch that a request is about."""

from __future__ import annotations

from taskweaver.server.accounts import User
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import not_found
from taskweaver.server.operations import Call
from taskweaver.utils.file_system.safe_fs import Folder

PREFIX = "/agent/v1"
SESSIONS = f"{PREFIX}/sessions"
ONE = f"{SESSIONS}/{{session_id}}"
BRANCH = f"{ONE}/branches/{{branch}}"
OF_BRANCH = {"branch": "Name of the branch; main if it is left out"}


async def found(sessions: AgentSessions, call: Call) -> UserConversation:
    """Return the session that a request is about.

    Raises:
        RequestRefused: If the user has no such session.
    """
    return await (await sessions.of(call.user)).conversation(call.path("session_id"))


def working_folder(conversation: UserConversation, branch: str) -> Folder:
    """Open the working directory of a branch; close it.

    Raises:
        SessionError: If the branch does not exist.
        OSError: If the directory is gone, or code put a link in its place.
    """
    return Folder.at(conversation.branch(branch).execution_cwd)


def last_seen(call: Call) -> str:
    """Return the id of the last event that a client saw: Last-Event-ID, else the query's after."""
    return call.request.headers.get("last-event-id", "") or call.query("after")


def require_admin(user: User, what: str) -> None:
    """Require that a user is an admin; `what` begins the message that refuses another.

    Raises:
        RequestRefused: If it is another.
    """
    if user.role != "admin":
        raise not_found(f"{what} are for admins.")
