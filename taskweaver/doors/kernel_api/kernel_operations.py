"""Operations on the kernel of a session."""

from __future__ import annotations

import asyncio

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

_OVERVIEW_BYTES, _CALL_BYTES = 64 << 20, 9 << 20


class KernelOperations:
    """Operations on the kernels of sessions.

    Attributes:
        operations: The operations.
    """

    def __init__(self, sessions: KernelSessions) -> None:
        self._sessions = sessions
        self.operations = [*self._of_cells(), *self._of_plugins(), *self._of_clients()]

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
                "PUT",
                f"{ONE}/plugins",
                self._update_plugins,
                "Load and remove plugins in one request",
                body=models.PluginUpdate,
                answer=models.PluginsLeftOut,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                f"{ONE}/plugins/{{name}}/test",
                self._test_plugin,
                "Run the tests of a plugin",
                answer=models.PluginTests,
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
        ]

    def _of_clients(self) -> list[ApiOperation]:
        return [
            ApiOperation(
                "PUT",
                f"{ONE}/functions",
                self._offer,
                "Let code call functions of the client, by events `call` of the execution",
                status=204,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                f"{ONE}/calls/{{call_id}}",
                self._answer_call,
                "Answer a call of a function of the client",
                body=models.CallAnswer,
                status=204,
                problems=(404,),
                body_limit=_CALL_BYTES,
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
            ApiOperation(
                "POST",
                f"{ONE}/snapshots",
                self._snapshot,
                "Keep the state of this moment",
                answer=models.KeptSnapshot,
                status=201,
            ),
            ApiOperation(
                "DELETE",
                f"{ONE}/snapshots/{{snapshot_id}}",
                self._discard,
                "Discard a snapshot",
                status=204,
                problems=(404,),
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

    async def _update_plugins(self, call: Call) -> BaseModel:
        wanted, session = call.read(models.PluginUpdate), found(self._sessions, call)
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

    async def _test_plugin(self, call: Call) -> BaseModel:
        name = call.path("name")
        results = await found(self._sessions, call).run(lambda kernel: kernel.test_plugin(name))
        tests = [models.PluginTestOutcome(name=item.name, failure=item.failure) for item in results]
        return models.PluginTests(results=tests)

    async def _offer(self, call: Call) -> Response:
        session = found(self._sessions, call)
        await session.run(lambda kernel: kernel.offer(session.calls))
        return Response(status_code=204)

    async def _answer_call(self, call: Call) -> Response:
        answer, session = call.read(models.CallAnswer), found(self._sessions, call)
        session.calls.answer(call.path("call_id"), answer.value, answer.error)
        return Response(status_code=204)

    async def _overview(self, call: Call) -> BaseModel:
        wanted, session = call.read(models.Overview), found(self._sessions, call)
        files = await session.run(lambda kernel: kernel.overview(wanted.files))
        return models.OverviewAnswer(files=dict(files))

    async def _snapshot(self, call: Call) -> BaseModel:
        session = found(self._sessions, call)
        await self._sessions.check_quotas(call.user)
        snapshot_id = await session.keep_snapshot()
        now = await asyncio.to_thread(lambda: session.kernel.footprint)
        return models.KeptSnapshot(
            snapshot_id=snapshot_id,
            resident_bytes=now.resident_bytes,
            shared_bytes=now.shared_bytes,
        )

    async def _discard(self, call: Call) -> Response:
        session, snapshot_id = found(self._sessions, call), call.path("snapshot_id")
        await asyncio.to_thread(session.take_snapshot(snapshot_id).close)
        return Response(status_code=204)
