"""The kernel API as a door of the server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel

from taskweaver import __version__
from taskweaver.ces.common import Manager
from taskweaver.ces.errors import ForkRefused, KernelClosed, KernelError, PluginLoadFailed
from taskweaver.doors.kernel_api import models
from taskweaver.doors.kernel_api.file_operations import FileOperations
from taskweaver.doors.kernel_api.kernel_operations import KernelOperations
from taskweaver.doors.kernel_api.registry import KernelSessions
from taskweaver.doors.kernel_api.routes import ONE, PREFIX, SESSIONS, found
from taskweaver.server.operations import ApiOperation, Call
from taskweaver.session.errors import SessionError


class KernelApi:
    """The kernel API. Finish and close it.

    Attributes:
        operations: Its operations.
        statuses: Status of the response for each class of errors.
    """

    statuses: Mapping[type[Exception], int] = MappingProxyType(
        {PluginLoadFailed: 400, ForkRefused: 409, KernelClosed: 410, SessionError: 409}
        | {KernelError: 503}
    )

    def __init__(self, kernels: Manager, folder: Path) -> None:
        """Offer kernels; the folders of sessions are made below `folder`.

        The caller closes `kernels`.
        """
        self._sessions = KernelSessions(kernels, folder)
        self.operations = [
            *self._of_sessions(),
            *KernelOperations(self._sessions).operations,
            *FileOperations(self._sessions).operations,
        ]

    async def finish(self, grace_s: float) -> None:
        """Refuse new work, and end the running work."""
        await self._sessions.finish(grace_s)

    async def close(self) -> None:
        """Stop every kernel of it."""
        await self._sessions.close()

    def _of_sessions(self) -> list[ApiOperation]:
        return [
            ApiOperation(
                "GET",
                f"{PREFIX}/health",
                self._health,
                "State of the server",
                answer=models.ServerHealth,
                is_public=True,
            ),
            ApiOperation(
                "GET", SESSIONS, self._list, "The caller's sessions", answer=models.SessionList
            ),
            ApiOperation(
                "POST",
                SESSIONS,
                self._create,
                "Make a session",
                body=models.NewSession,
                answer=models.CreatedSession,
                status=201,
                problems=(409,),
            ),
            ApiOperation(
                "GET",
                ONE,
                self._facts,
                "Facts about a session",
                answer=models.SessionFacts,
                problems=(404,),
            ),
            ApiOperation(
                "DELETE",
                ONE,
                self._remove,
                "Stop a session and delete its files",
                answer=models.StoppedSession,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                f"{ONE}/fork",
                self._fork,
                "Make a session with the variables and files of this one",
                body=models.NewFork,
                answer=models.CreatedSession,
                status=201,
            ),
        ]

    async def _health(self, call: Call) -> BaseModel:
        count = len(self._sessions.of(call.user))
        return models.ServerHealth(version=__version__, active_sessions=count)

    async def _list(self, call: Call) -> BaseModel:
        return models.SessionList(sessions=[item.facts for item in self._sessions.of(call.user)])

    async def _create(self, call: Call) -> BaseModel:
        wanted = call.read(models.NewSession)
        await self._sessions.check_quotas(call.user)
        session = await self._sessions.create(call.user, wanted.session_id)
        return models.CreatedSession(session_id=session.id, cwd=session.facts.cwd)

    async def _facts(self, call: Call) -> BaseModel:
        return self._sessions.get(call.user, call.path("session_id")).facts

    async def _remove(self, call: Call) -> BaseModel:
        session = found(self._sessions, call)
        await self._sessions.remove(session)
        return models.StoppedSession(session_id=session.id)

    async def _fork(self, call: Call) -> BaseModel:
        wanted, source = call.read(models.NewFork), found(self._sessions, call)
        await self._sessions.check_quotas(call.user)
        session = await self._sessions.fork(call.user, source, wanted.session_id)
        return models.CreatedSession(session_id=session.id, cwd=session.facts.cwd)
