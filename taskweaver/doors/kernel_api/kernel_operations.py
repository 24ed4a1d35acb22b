"""Operations on the kernel of a session."""

from __future__ import annotations

from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from taskweaver.ces.common import Client, ExecutionResult, PluginCode
from taskweaver.doors.kernel_api import models
from taskweaver.doors.kernel_api.executions import Ending
from taskweaver.doors.kernel_api.registry import KernelSessions
from taskweaver.doors.kernel_api.routes import ONE, SESSIONS, found
from taskweaver.server.agents.following import event_stream
from taskweaver.server.operations import (
    EVENTS_TYPE,
    ApiOperation,
    Call,
    missing,
    plain_name,
)

_OVERVIEW_BYTES = 64 << 20


class KernelOperations:
    """Operations on the kernels of sessions.

    Attributes:
        operations: The operations.
    """

    def __init__(self, sessions: KernelSessions) -> None:
        self._sessions = sessions
        self.operations = [*self._of_cells(), *self._of_plugins()]

    def _of_cells(self) -> list[ApiOperation]:
        stream = f"{ONE}/execute/{{exec_id}}/stream"
        return [
            ApiOperation(
                "POST",
                f"{ONE}/execute",
                self._execute,
                "Run code",
                body=models.NewExecution,
                answer=models.ExecutionAnswer,
            ),
            ApiOperation(
                "GET",
                stream,
                self._stream,
                "Events of an execution; the header Last-Event-ID resumes",
                answer_type=EVENTS_TYPE,
            ),
            ApiOperation(
                "POST",
                f"{ONE}/interrupt",
                self._interrupt,
                "Interrupt the running cell",
                answer=models.Interrupted,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                f"{ONE}/restart",
                self._restart,
                "Replace the kernel by a fresh one",
                answer=models.Restarted,
                problems=(404,),
            ),
        ]

    def _of_plugins(self) -> list[ApiOperation]:
        return [
            ApiOperation(
                "POST",
                f"{ONE}/plugins",
                self._load_plugin,
                "Load a plugin",
                body=models.NewPlugin,
                answer=models.LoadedPlugin,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                f"{ONE}/variables",
                self._set_variables,
                "Set session variables, which plugins read",
                body=models.NewVariables,
                answer=models.UpdatedVariables,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                f"{ONE}/overview",
                self._overview,
                "A first impression of data files, from their beginnings",
                body=models.Overview,
                answer=models.OverviewAnswer,
                problems=(404,),
                body_limit=_OVERVIEW_BYTES,
            ),
        ]

    async def _execute(self, call: Call) -> Response | BaseModel:
        wanted, session = call.read(models.NewExecution), found(self._sessions, call)
        name = plain_name(wanted.exec_id, "an execution")
        await self._sessions.check_quotas(call.user)
        address = f"{call.base_url}{SESSIONS}/{session.id}"

        def ending(ended: ExecutionResult | str) -> Ending:
            if isinstance(ended, str):
                failed = models.ExecutionAnswer(execution_id=name, is_success=False, error=ended)
                return Ending(failed.model_dump_json())
            answer = models.execution_answer(ended, f"{address}/artifacts")
            details = models.execution_details(ended)
            return Ending(answer.model_dump_json(), details.model_dump_json())

        execution = session.execute(name, wanted.code, ending)
        if wanted.stream:
            stream_url = f"{address}/execute/{name}/stream"
            return JSONResponse({"execution_id": name, "stream_url": stream_url})
        return models.execution_answer(await execution.outcome(), f"{address}/artifacts")

    async def _stream(self, call: Call) -> Response:
        execution = found(self._sessions, call).executions.get(call.path("exec_id"))
        if execution is None:
            raise missing("Execution", call.path("exec_id")[:128])
        position = execution.position(call.request.headers.get("last-event-id", ""))
        return event_stream(execution.follow(position))

    async def _interrupt(self, call: Call) -> BaseModel:
        session = found(self._sessions, call)
        await session.interrupt()
        return models.Interrupted(session_id=session.id)

    async def _restart(self, call: Call) -> BaseModel:
        session = found(self._sessions, call)
        await self._sessions.restart(call.user, session)
        return models.Restarted(session_id=session.id)

    async def _load_plugin(self, call: Call) -> BaseModel:
        wanted, session = call.read(models.NewPlugin), found(self._sessions, call)

        def load(kernel: Client) -> None:
            kernel.load_plugin(wanted.name, wanted.code, wanted.config)

        await session.run(load)
        plugin = PluginCode(wanted.name, wanted.code, wanted.config)
        session.loaded.plugins[wanted.name] = plugin
        return models.LoadedPlugin(name=wanted.name)

    async def _set_variables(self, call: Call) -> BaseModel:
        wanted, session = call.read(models.NewVariables), found(self._sessions, call)
        await session.run(lambda kernel: kernel.update_session_var(wanted.variables))
        session.loaded.variables |= wanted.variables
        return models.UpdatedVariables(variables=wanted.variables)

    async def _overview(self, call: Call) -> BaseModel:
        wanted, session = call.read(models.Overview), found(self._sessions, call)
        files = await session.run(lambda kernel: kernel.overview(wanted.files))
        return models.OverviewAnswer(files=dict(files))
