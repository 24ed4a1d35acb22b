"""The kernel API as a door of the server."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from taskweaver import __version__
from taskweaver.ces.common import Manager
from taskweaver.ces.errors import ForkRefused, KernelClosed, KernelError, PluginLoadFailed
from taskweaver.doors.kernel_api import models
from taskweaver.doors.kernel_api.file_operations import FileOperations
from taskweaver.doors.kernel_api.kernel_operations import KernelOperations
from taskweaver.doors.kernel_api.registry import KernelSessions
from taskweaver.doors.kernel_api.routes import ONE, PREFIX, SESSIONS, KernelApiOperations
from taskweaver.server.operations import Call, Door, operation
from taskweaver.session.errors import SessionError


class KernelApi(KernelApiOperations, Door):
    """The kernel API. Finish and close it."""

    statuses = MappingProxyType(
        {
            PluginLoadFailed: 400,
            ForkRefused: 409,
            KernelClosed: 410,
            SessionError: 409,
            KernelError: 503,
        }
    )

    def __init__(self, kernels: Manager, folder: Path) -> None:
        """Offer kernels; the folders of sessions are made below `folder`.

        The caller closes `kernels`.
        """
        super().__init__(KernelSessions(kernels, folder))
        self.groups = (KernelOperations(self._sessions), FileOperations(self._sessions))

    async def finish(self, grace_s: float) -> None:
        """Refuse new work, and end the running work."""
        await self._sessions.finish(grace_s)

    async def close(self) -> None:
        """Stop every kernel of it."""
        await self._sessions.close()

    @operation("GET", f"{PREFIX}/health", "State of the server", is_public=True)
    async def _health(self, call: Call) -> models.ServerHealth:
        count = len(self._sessions.of(call.user))
        return models.ServerHealth(version=__version__, active_sessions=count)

    @operation("GET", SESSIONS, "The caller's sessions")
    async def _list(self, call: Call) -> models.SessionList:
        return models.SessionList(sessions=[item.facts for item in self._sessions.of(call.user)])

    @operation("POST", SESSIONS, "Make a session", status=201, problems=(409,))
    async def _create(self, call: Call, wanted: models.NewSession) -> models.CreatedSession:
        await self._sessions.check_quotas(call.user)
        session = await self._sessions.create(call.user, wanted.session_id)
        return models.CreatedSession(session_id=session.id, cwd=session.facts.cwd)

    @operation("GET", ONE, "Facts about a session", problems=(404,))
    async def _facts(self, call: Call) -> models.SessionFacts:
        return self._sessions.get(call.user, call.path("session_id")).facts

    @operation("DELETE", ONE, "Stop a session and delete its files", problems=(404,))
    async def _remove(self, call: Call) -> models.StoppedSession:
        session = self._found(call)
        await self._sessions.remove(session)
        return models.StoppedSession(session_id=session.id)

    @operation(
        "POST", f"{ONE}/fork", "Make a session with the variables and files of this one", status=201
    )
    async def _fork(self, call: Call, wanted: models.NewFork) -> models.CreatedSession:
        source = self._found(call)
        await self._sessions.check_quotas(call.user)
        session = await self._sessions.fork(call.user, source, wanted.session_id)
        return models.CreatedSession(session_id=session.id, cwd=session.facts.cwd)
