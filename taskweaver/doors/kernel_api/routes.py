"""Addresses of the kernel API, and the session that a request is about."""

from __future__ import annotations

from taskweaver.doors.kernel_api.registry import KernelSessions
from taskweaver.doors.kernel_api.sessions import KernelSession
from taskweaver.server.operations import Call

PREFIX = "/api/v1"
SESSIONS = f"{PREFIX}/sessions"
ONE = f"{SESSIONS}/{{session_id}}"


class KernelApiOperations:
    """Operations on the sessions of the kernel API."""

    def __init__(self, sessions: KernelSessions) -> None:
        self._sessions = sessions

    def _found(self, call: Call) -> KernelSession:
        """Return the session that a request is about, and note that it is in use.

        Raises:
            RequestRefused: If the user has no such session.
        """
        session = self._sessions.get(call.user, call.path("session_id"))
        session.touch()
        return session
