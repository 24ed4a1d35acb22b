"""The kernel API as a door of the server: its operations and their handlers."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from pydantic import BaseModel
from starlette.responses import JSONResponse, Response, StreamingResponse

from taskweaver import __version__
from taskweaver.ces.common import Client, ExecutionResult, Manager, PluginCode
from taskweaver.ces.errors import ForkRefused, KernelClosed, KernelError, PluginLoadFailed
from taskweaver.doors.kernel_api import models
from taskweaver.doors.kernel_api.registry import KernelSessions
from taskweaver.doors.kernel_api.sessions import KernelSession
from taskweaver.doors.kernel_api.transfer import download, explained, list_files, upload
from taskweaver.server.errors import RequestRefused
from taskweaver.server.operations import EVENTS_TYPE, ApiOperation, Call, missing, plain_name
from taskweaver.session.errors import SessionError

_PREFIX = "/api/v1"
_ONE = f"{_PREFIX}/sessions/{{session_id}}"
_MOST_UPLOAD_BYTES = 8 << 30
_MOST_BASE64_BYTES = 64 << 20


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
        self.operations = [*self._of_sessions(), *self._of_kernels(), *self._of_files()]

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
                f"{_PREFIX}/health",
                self._health,
                "State of the server",
                answer=models.ServerHealth,
                is_public=True,
            ),
            ApiOperation(
                "GET",
                f"{_PREFIX}/sessions",
                self._list,
                "The caller's sessions",
                answer=models.SessionList,
            ),
            ApiOperation(
                "POST",
                f"{_PREFIX}/sessions",
                self._create,
                "Make a session",
                body=models.NewSession,
                answer=models.CreatedSession,
                status=201,
                problems=(409,),
            ),
            ApiOperation(
                "GET",
                _ONE,
                self._facts,
                "Facts about a session",
                answer=models.SessionFacts,
                problems=(404,),
            ),
            ApiOperation(
                "DELETE",
                _ONE,
                self._remove,
                "Stop a session and delete its files",
                answer=models.StoppedSession,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                f"{_ONE}/fork",
                self._fork,
                "Make a session with the variables and files of this one",
                body=models.NewFork,
                answer=models.CreatedSession,
                status=201,
                problems=(404, 409),
            ),
        ]

    def _of_kernels(self) -> list[ApiOperation]:
        return [
            ApiOperation(
                "POST",
                f"{_ONE}/execute",
                self._execute,
                "Run code",
                body=models.NewExecution,
                answer=models.ExecutionAnswer,
                problems=(404, 409),
            ),
            ApiOperation(
                "GET",
                f"{_ONE}/execute/{{exec_id}}/stream",
                self._stream,
                "Events of an execution; the header Last-Event-ID resumes",
                answer_type=EVENTS_TYPE,
                problems=(404, 409),
            ),
            ApiOperation(
                "POST",
                f"{_ONE}/interrupt",
                self._interrupt,
                "Interrupt the running cell",
                answer=models.Interrupted,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                f"{_ONE}/restart",
                self._restart,
                "Replace the kernel by a fresh one",
                answer=models.Restarted,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                f"{_ONE}/plugins",
                self._load_plugin,
                "Load a plugin",
                body=models.NewPlugin,
                answer=models.LoadedPlugin,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                f"{_ONE}/variables",
                self._set_variables,
                "Set session variables, which plugins read",
                body=models.NewVariables,
                answer=models.UpdatedVariables,
                problems=(404,),
            ),
        ]

    def _of_files(self) -> list[ApiOperation]:
        return [
            ApiOperation(
                "GET",
                f"{_ONE}/files",
                self._list_files,
                "Files of the working directory",
                answer=models.FileList,
                problems=(404, 409),
            ),
            ApiOperation(
                "POST",
                f"{_ONE}/files",
                self._write_file,
                "Write a file that is in the body",
                body=models.NewFile,
                answer=models.UploadedFile,
                problems=(404, 507),
                body_limit=_MOST_BASE64_BYTES,
            ),
            ApiOperation(
                "PUT",
                f"{_ONE}/files/{{path:path}}",
                self._upload,
                "Write a file of any size; the body is its bytes",
                takes_bytes=True,
                answer=models.UploadedFile,
                problems=(404, 413, 507),
            ),
            *(
                ApiOperation(
                    "GET",
                    f"{_ONE}/{name}/{{path:path}}",
                    self._download,
                    "Bytes of a file, or a range of them",
                    answer_type="application/octet-stream",
                    problems=(404, 416),
                )
                for name in ("files", "artifacts")
            ),
            ApiOperation(
                "DELETE",
                f"{_ONE}/files/{{path:path}}",
                self._delete_file,
                "Delete a file or a folder",
                status=204,
                problems=(404,),
            ),
        ]

    def _session(self, call: Call) -> KernelSession:
        session = self._sessions.get(call.user, call.path("session_id"))
        session.touch()
        return session

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
        session = self._session(call)
        await self._sessions.remove(session)
        return models.StoppedSession(session_id=session.id)

    async def _fork(self, call: Call) -> BaseModel:
        wanted, source = call.read(models.NewFork), self._session(call)
        await self._sessions.check_quotas(call.user)
        session = await self._sessions.fork(call.user, source, wanted.session_id)
        return models.CreatedSession(session_id=session.id, cwd=session.facts.cwd)

    async def _execute(self, call: Call) -> Response | BaseModel:
        wanted, session = call.read(models.NewExecution), self._session(call)
        name = plain_name(wanted.exec_id, "an execution")
        await self._sessions.check_quotas(call.user)
        address = f"{call.base_url}{_PREFIX}/sessions/{session.id}"

        def answer(ended: ExecutionResult | str) -> str:
            if isinstance(ended, str):
                failed = models.ExecutionAnswer(execution_id=name, is_success=False, error=ended)
                return failed.model_dump_json()
            return models.execution_answer(ended, f"{address}/artifacts").model_dump_json()

        execution = session.execute(name, wanted.code, answer)
        if wanted.stream:
            stream_url = f"{address}/execute/{name}/stream"
            return JSONResponse({"execution_id": name, "stream_url": stream_url})
        return models.execution_answer(await execution.outcome(), f"{address}/artifacts")

    async def _stream(self, call: Call) -> Response:
        execution = self._session(call).executions.get(call.path("exec_id"))
        if execution is None:
            raise missing("Execution", call.path("exec_id")[:128])
        position = execution.position(call.request.headers.get("last-event-id", ""))
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return StreamingResponse(execution.follow(position), 200, headers, EVENTS_TYPE)

    async def _interrupt(self, call: Call) -> BaseModel:
        session = self._session(call)
        await asyncio.to_thread(session.kernel.interrupt)
        return models.Interrupted(session_id=session.id)

    async def _restart(self, call: Call) -> BaseModel:
        session = self._session(call)
        await self._sessions.restart(call.user, session)
        return models.Restarted(session_id=session.id)

    async def _load_plugin(self, call: Call) -> BaseModel:
        wanted, session = call.read(models.NewPlugin), self._session(call)

        def load(kernel: Client) -> None:
            kernel.load_plugin(wanted.name, wanted.code, wanted.config)

        await session.run(load)
        plugin = PluginCode(wanted.name, wanted.code, wanted.config)
        session.loaded.plugins[wanted.name] = plugin
        return models.LoadedPlugin(name=wanted.name)

    async def _set_variables(self, call: Call) -> BaseModel:
        wanted, session = call.read(models.NewVariables), self._session(call)
        await session.run(lambda kernel: kernel.update_session_var(wanted.variables))
        session.loaded.variables |= wanted.variables
        return models.UpdatedVariables(variables=wanted.variables)

    async def _list_files(self, call: Call) -> BaseModel:
        folder = self._session(call).files
        return models.FileList(files=await asyncio.to_thread(list_files, folder))

    async def _write_file(self, call: Call) -> BaseModel:
        wanted, session = call.read(models.NewFile), self._session(call)
        await self._sessions.check_quotas(call.user)
        name = PurePosixPath(wanted.filename.replace("\\", "/")).name
        content = _decoded(wanted)

        def write() -> None:
            with explained(wanted.filename), session.files.replacing(name) as file:
                file.write(content)

        await asyncio.to_thread(write)
        return models.UploadedFile(filename=wanted.filename, path=str(session.place.cwd / name))

    async def _upload(self, call: Call) -> BaseModel:
        session, path = self._session(call), call.path("path")
        await self._sessions.check_quotas(call.user)
        await upload(session.files, path, call.chunks(_MOST_UPLOAD_BYTES))
        return models.UploadedFile(filename=path, path=str(session.place.cwd / path))

    async def _download(self, call: Call) -> Response:
        session, path = self._session(call), call.path("path")
        asked = call.request.headers.get("range", "")
        return await asyncio.to_thread(partial(download, session.files, path, asked))

    async def _delete_file(self, call: Call) -> Response:
        session, path = self._session(call), call.path("path")

        def delete() -> None:
            with explained(path):
                session.files.remove(path)

        await asyncio.to_thread(delete)
        return Response(status_code=204)


def _decoded(file: models.NewFile) -> bytes:
    if file.encoding == "text":
        return file.content.encode("utf-8", "replace")
    try:
        return base64.b64decode(file.content, validate=True)
    except (binascii.Error, ValueError):
        detail = "The content is not encoded in base64."
        raise RequestRefused(422, "invalid-body", detail) from None
