"""Operations on the kernel of a session."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from taskweaver.ces.common import Client, ExecutionResult, PluginCode
from taskweaver.doors.kernel_api import models
from taskweaver.doors.kernel_api.executions import Ending
from taskweaver.doors.kernel_api.routes import ONE, SESSIONS, KernelApiOperations
from taskweaver.server.agents.following import event_stream
from taskweaver.server.operations import (
    EVENTS_TYPE,
    Call,
    missing,
    operation,
    plain_name,
)

_OVERVIEW_BYTES = 64 << 20


class KernelOperations(KernelApiOperations):
    """Operations on the kernels of sessions."""

    @operation("POST", f"{ONE}/execute", "Run code")
    async def _execute(
        self, call: Call, wanted: models.NewExecution
    ) -> Response | models.ExecutionAnswer:
        session = self._found(call)
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

    @operation("POST", f"{ONE}/interrupt", "Interrupt the running cell", problems=(404,))
    async def _interrupt(self, call: Call) -> models.Interrupted:
        session = self._found(call)
        await session.interrupt()
        return models.Interrupted(session_id=session.id)

    @operation("POST", f"{ONE}/restart", "Replace the kernel by a fresh one", problems=(404,))
    async def _restart(self, call: Call) -> models.Restarted:
        session = self._found(call)
        await self._sessions.restart(call.user, session)
        return models.Restarted(session_id=session.id)

    @operation("POST", f"{ONE}/plugins", "Load a plugin", problems=(404,))
    async def _load_plugin(self, call: Call, wanted: models.NewPlugin) -> models.LoadedPlugin:
        session = self._found(call)

        def load(kernel: Client) -> None:
            kernel.load_plugin(wanted.name, wanted.code, wanted.config)

        await session.run(load)
        plugin = PluginCode(wanted.name, wanted.code, wanted.config)
        session.loaded.plugins[wanted.name] = plugin
        return models.LoadedPlugin(name=wanted.name)

    @operation(
        "POST", f"{ONE}/variables", "Set session variables, which plugins read", problems=(404,)
    )
    async def _set_variables(
        self, call: Call, wanted: models.NewVariables
    ) -> models.UpdatedVariables:
        session = self._found(call)
        await session.run(lambda kernel: kernel.update_session_var(wanted.variables))
        session.loaded.variables |= wanted.variables
        return models.UpdatedVariables(variables=wanted.variables)

    @operation(
        "POST",
        f"{ONE}/overview",
        "A first impression of data files, from their beginnings",
        problems=(404,),
        body_limit=_OVERVIEW_BYTES,
    )
    async def _overview(self, call: Call, wanted: models.Overview) -> models.OverviewAnswer:
        session = self._found(call)
        files = await session.run(lambda kernel: kernel.overview(wanted.files))
        return models.OverviewAnswer(files=dict(files))
