"""The kernel API as a door of the server: operations on sessions, kernels and files."""

from __future__ import annotations

import asyncio
import base64
import binascii
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from starlette.responses import JSONResponse, Response

from taskweaver import __version__
from taskweaver.ces.common import ExecutionResult, Manager, PluginCode
from taskweaver.ces.errors import ForkRefused, KernelClosed, KernelError, PluginLoadFailed
from taskweaver.doors.kernel_api import models
from taskweaver.doors.kernel_api.registry import KernelSessions
from taskweaver.doors.kernel_api.sessions import KernelSession, LastEvents
from taskweaver.server.admission import Admission
from taskweaver.server.agents.following import event_stream
from taskweaver.server.errors import invalid_body
from taskweaver.server.operations import (
    BYTES_TYPE,
    EVENTS_TYPE,
    Call,
    Door,
    missing,
    operation,
    plain_name,
)
from taskweaver.server.transfer import FileFacts, explained, list_files, remove, sent, upload
from taskweaver.session.errors import SessionError

PREFIX = "/api/v1"
SESSIONS = f"{PREFIX}/sessions"
ONE = f"{SESSIONS}/{{session_id}}"


_OVERVIEW_BYTES = 64 << 20
_FILE = f"{ONE}/files/{{path:path}}"
_MOST_BASE64_BYTES = 64 << 20


class KernelApi(Door):
    """The kernel API. Needs `finish` and `close`."""

    statuses = MappingProxyType(
        {
            PluginLoadFailed: 400,
            ForkRefused: 409,
            KernelClosed: 410,
            SessionError: 409,
            KernelError: 503,
        }
    )

    def __init__(self, kernels: Manager, folder: Path, admission: Admission | None = None) -> None:
        """Offer kernels. The folders of sessions are made below `folder`.

        The caller closes `kernels`, and the shares of users that other doors use, too.
        """
        self._sessions = KernelSessions(kernels, folder, admission or Admission())

    async def finish(self, grace_s: float) -> None:
        """Refuse new work, and end the running work."""
        await self._sessions.finish(grace_s)

    async def close(self) -> None:
        """Stop every kernel."""
        await self._sessions.close()

    @operation("GET", f"{PREFIX}/health", "State of the server", is_public=True)
    async def _health(self, call: Call) -> models.ServerHealth:
        count = len(self._sessions.of(call.user.name))
        return models.ServerHealth(version=__version__, active_sessions=count)

    @operation("GET", SESSIONS, "The caller's sessions")
    async def _list(self, call: Call) -> models.SessionList:
        return models.SessionList(
            sessions=[item.facts for item in self._sessions.of(call.user.name)]
        )

    @operation("POST", SESSIONS, "Make a session", status=201)
    async def _create(self, call: Call, wanted: models.NewSession) -> models.CreatedSession:
        session = await self._sessions.create(call.user, wanted.session_id)
        return models.CreatedSession(session_id=session.id, cwd=session.facts.cwd)

    @operation("GET", ONE, "Facts about a session")
    async def _facts(self, call: Call) -> models.SessionFacts:
        return self._sessions.get(call.user, call.path("session_id")).facts

    @operation("DELETE", ONE, "Stop a session and delete its files")
    async def _remove(self, call: Call) -> models.SessionStatus:
        session = self._found(call)
        await self._sessions.remove(session)
        return models.SessionStatus(session_id=session.id, status="stopped")

    @operation(
        "POST", f"{ONE}/fork", "Make a session with the variables and files of this one", status=201
    )
    async def _fork(self, call: Call, wanted: models.NewSession) -> models.CreatedSession:
        source = self._found(call)
        session = await self._sessions.fork(call.user, source, wanted.session_id)
        return models.CreatedSession(session_id=session.id, cwd=session.facts.cwd)

    @operation("POST", f"{ONE}/execute", "Run code")
    async def _execute(
        self, call: Call, wanted: models.NewExecution
    ) -> Response | models.ExecutionAnswer:
        session = self._found(call)
        name = plain_name(wanted.exec_id, "an execution")
        (await self._sessions.admission.reserve(call.user)).close()
        address = f"{call.base_url}{SESSIONS}/{session.id}"

        def last_events(ended: ExecutionResult | str) -> LastEvents:
            if isinstance(ended, str):
                failed = models.ExecutionAnswer(execution_id=name, is_success=False, error=ended)
                return [("result", failed.model_dump_json())]
            answer = models.execution_answer(ended, f"{address}/artifacts")
            details = models.execution_details(ended)
            return [("details", details.model_dump_json()), ("result", answer.model_dump_json())]

        execution = session.execute(name, wanted.code, last_events)
        if wanted.stream:
            stream_url = f"{address}/execute/{name}/stream"
            return JSONResponse({"execution_id": name, "stream_url": stream_url})
        return models.execution_answer(await execution.outcome(), f"{address}/artifacts")

    @operation(
        "GET",
        f"{ONE}/execute/{{exec_id}}/stream",
        "Events of an execution; the header Last-Event-ID resumes",
        answer_type=EVENTS_TYPE,
    )
    async def _stream(self, call: Call) -> Response:
        execution = self._found(call).executions.get(call.path("exec_id"))
        if execution is None:
            raise missing("Execution", call.path("exec_id")[:128])
        position = execution.position(call.request.headers.get("last-event-id", ""))
        return event_stream(execution.follow(position))

    @operation("POST", f"{ONE}/interrupt", "Interrupt the running cell", is_end=True)
    async def _interrupt(self, call: Call) -> models.SessionStatus:
        session = self._found(call)
        await session.interrupt()
        return models.SessionStatus(session_id=session.id, status="interrupted")

    @operation("POST", f"{ONE}/restart", "Replace the kernel by a fresh one")
    async def _restart(self, call: Call) -> models.SessionStatus:
        session = self._found(call)
        await self._sessions.restart(call.user, session)
        return models.SessionStatus(session_id=session.id, status="restarted")

    @operation("POST", f"{ONE}/plugins", "Load a plugin")
    async def _load_plugin(self, call: Call, wanted: models.NewPlugin) -> models.LoadedPlugin:
        session, plugin = self._found(call), (wanted.name, wanted.code, wanted.config)
        await session.run(lambda kernel: kernel.load_plugin(*plugin))
        session.plugins[wanted.name] = PluginCode(*plugin)
        return models.LoadedPlugin(name=wanted.name)

    @operation("POST", f"{ONE}/variables", "Set session variables, which plugins read")
    async def _set_variables(
        self, call: Call, wanted: models.NewVariables
    ) -> models.UpdatedVariables:
        session = self._found(call)
        await session.run(lambda kernel: kernel.update_session_var(wanted.variables))
        session.variables |= wanted.variables
        return models.UpdatedVariables(variables=wanted.variables)

    @operation(
        "POST",
        f"{ONE}/overview",
        "A first impression of data files, from their beginnings",
        body_limit=_OVERVIEW_BYTES,
    )
    async def _overview(self, call: Call, wanted: models.Overview) -> models.OverviewAnswer:
        session = self._found(call)
        files = await session.run(lambda kernel: kernel.overview(wanted.files))
        return models.OverviewAnswer(files=dict(files))

    @operation("GET", f"{ONE}/files", "Files of the working directory")
    async def _list_files(self, call: Call) -> models.FileList:
        files = await asyncio.to_thread(list_files, self._found(call).files)
        return models.FileList(files=files)

    @operation(
        "POST",
        f"{ONE}/files",
        "Write a file that is in the body",
        body_limit=_MOST_BASE64_BYTES,
    )
    async def _write_file(self, call: Call, wanted: models.NewFile) -> models.UploadedFile:
        session = self._found(call)
        name = PurePosixPath(wanted.filename.replace("\\", "/")).name
        content = _decoded(wanted)

        def write() -> None:
            with explained(wanted.filename), session.files.replacing(name) as file:
                file.write(content)

        with await self._sessions.admission.reserve(call.user, size=len(content)):
            await asyncio.to_thread(write)
        return models.UploadedFile(filename=wanted.filename, path=str(session.place.cwd / name))

    @operation(
        "PUT",
        _FILE,
        "Write a file; the body is its bytes",
        raw=BYTES_TYPE,
    )
    async def _upload(self, call: Call) -> FileFacts:
        session, path = self._found(call), call.path("path")
        return await upload(self._sessions.admission, session.files, path, call)

    @operation("GET", _FILE, "Bytes of a file, or a range of them", answer_type=BYTES_TYPE)
    @operation(
        "GET",
        f"{ONE}/artifacts/{{path:path}}",
        "Bytes of a file, or a range of them",
        answer_type=BYTES_TYPE,
    )
    async def _download(self, call: Call) -> Response:
        return await sent(call, self._found(call).files, call.path("path"))

    @operation("DELETE", _FILE, "Delete a file or a folder")
    async def _delete_file(self, call: Call) -> None:
        await remove(self._found(call).files, call.path("path"))

    def _found(self, call: Call) -> KernelSession:
        """Return the session that a request is about, and note the use.

        Raises:
            RequestRefused: If the user has no such session.
        """
        session = self._sessions.get(call.user, call.path("session_id"))
        session.touch()
        return session


def _decoded(file: models.NewFile) -> bytes:
    if file.encoding == "text":
        return file.content.encode("utf-8", "replace")
    try:
        return base64.b64decode(file.content, validate=True)
    except (binascii.Error, ValueError):
        detail = "The content is not encoded in base64."
        raise invalid_body(detail) from None
