"""Operations on the kernel of a session."""

from __future__ import annotations

import asyncio

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
    view,
)

_OVERVIEW_BYTES, _CALL_BYTES = 64 << 20, 9 << 20


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

    @operation("PUT", f"{ONE}/plugins", "Load and remove plugins in one request", problems=(404,))
    async def _update_plugins(
        self, call: Call, wanted: models.PluginUpdate
    ) -> models.PluginsLeftOut:
        session = self._found(call)
        plugins = [PluginCode(item.name, item.code, item.config) for item in wanted.plugins]

        def update(kernel: Client) -> dict[str, str]:
            return kernel.load_plugins(plugins, wanted.removed)

        left_out = await session.run(update)
        for name in wanted.removed:
            session.loaded.plugins.pop(name, None)
        for plugin in plugins:
            if plugin.name not in left_out:
                session.loaded.plugins[plugin.name] = plugin
        return models.PluginsLeftOut(left_out=left_out)

    @operation("POST", f"{ONE}/plugins/{{name}}/test", "Run the tests of a plugin", problems=(404,))
    async def _test_plugin(self, call: Call) -> models.PluginTests:
        name = call.path("name")
        results = await self._found(call).run(lambda kernel: kernel.test_plugin(name))
        tests = [view(models.PluginTestOutcome, item) for item in results]
        return models.PluginTests(results=tests)

    @operation(
        "PUT",
        f"{ONE}/functions",
        "Let code call functions of the client, by events `call` of the execution",
        problems=(404,),
    )
    async def _offer(self, call: Call) -> None:
        session = self._found(call)
        await session.run(lambda kernel: kernel.offer(session.calls))

    @operation(
        "POST",
        f"{ONE}/calls/{{call_id}}",
        "Answer a call of a function of the client",
        problems=(404,),
        body_limit=_CALL_BYTES,
    )
    async def _answer_call(self, call: Call, answer: models.CallAnswer) -> None:
        session = self._found(call)
        session.calls.answer(call.path("call_id"), answer.value, answer.error)

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

    @operation("POST", f"{ONE}/snapshots", "Keep the state of this moment", status=201)
    async def _snapshot(self, call: Call) -> models.KeptSnapshot:
        session = self._found(call)
        await self._sessions.check_quotas(call.user)
        snapshot_id = await session.keep_snapshot()
        now = await asyncio.to_thread(lambda: session.kernel.footprint)
        return view(models.KeptSnapshot, now, snapshot_id=snapshot_id)

    @operation("DELETE", f"{ONE}/snapshots/{{snapshot_id}}", "Discard a snapshot", problems=(404,))
    async def _discard(self, call: Call) -> None:
        session, snapshot_id = self._found(call), call.path("snapshot_id")
        await asyncio.to_thread(session.take_snapshot(snapshot_id).close)
