"""Operations on the runs of tree searches: start, watch, stop, and a chat with an attempt."""

from __future__ import annotations

import asyncio
from functools import partial

from pydantic import BaseModel

from taskweaver.doors.agent_api.models import SessionId
from taskweaver.doors.agent_api.routes import PREFIX, require_admin
from taskweaver.doors.agent_api.searches import models, views
from taskweaver.doors.agent_api.searches.processes import SearchProcesses
from taskweaver.doors.agent_api.searches.reading import ReadRun, RunReader
from taskweaver.server.accounts import LOCAL_USER
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import conflict, not_found
from taskweaver.server.operations import ApiOperation, Call, missing
from taskweaver.treesearch.service import session_on_node

_SEARCHES = f"{PREFIX}/searches"
_RUN = f"{_SEARCHES}/{{run}}"
_NODE = f"{_RUN}/nodes/{{node}}"
_SEEN = {"seen": "Version of the attempts that the client has; they are left out if it is theirs"}


class SearchOperations:
    """Operations on searches. They are the project's: an admin has them, no other user does.

    Attributes:
        operations: The operations.
    """

    def __init__(self, sessions: AgentSessions, processes: SearchProcesses) -> None:
        self._sessions = sessions
        self._processes = processes
        self._reader = RunReader(sessions.app)
        self.operations = [*self._of_reading(), *self._of_running()]

    def _of_reading(self) -> list[ApiOperation]:
        return [
            ApiOperation(
                "GET",
                _SEARCHES,
                self._list,
                "Runs of tree searches, the newest first",
                answer=models.SearchRuns,
                problems=(404,),
            ),
            ApiOperation(
                "GET",
                _RUN,
                self._show,
                "A run with all its attempts",
                query=_SEEN,
                answer=models.SearchTree,
                problems=(404,),
            ),
            ApiOperation(
                "GET",
                _NODE,
                self._node,
                "An attempt, with plan, program, changes, output, logs and error",
                answer=models.SearchNode,
                problems=(404,),
            ),
        ]

    def _of_running(self) -> list[ApiOperation]:
        return [
            ApiOperation(
                "POST",
                _SEARCHES,
                self._start,
                "Start a search of an idea; it ends with the server, and can be gone on with",
                body=models.NewSearch,
                answer=models.SearchName,
                status=201,
                problems=(404, 409),
            ),
            ApiOperation(
                "POST",
                f"{_RUN}/stop",
                self._stop,
                "Stop a search cleanly; what is being tried is given up",
                answer=models.SearchName,
                status=202,
            ),
            ApiOperation(
                "POST",
                f"{_RUN}/resume",
                self._resume,
                "Go on with a run that was stopped, or with new limits where they were reached",
                body=models.SearchLimits,
                answer=models.SearchName,
                status=202,
            ),
            ApiOperation(
                "POST",
                f"{_NODE}/session",
                self._continue,
                "Make a session that continues an attempt; for the person who started the server",
                answer=SessionId,
                status=201,
                problems=(404,),
            ),
        ]

    async def _list(self, call: Call) -> BaseModel:
        require_admin(call.user, "Searches")
        found = await asyncio.to_thread(lambda: list(self._reader.every()))
        return models.SearchRuns(runs=[views.run_view(run, self._processes) for run in found])

    async def _show(self, call: Call) -> BaseModel:
        run = await self._run(call)
        return await asyncio.to_thread(views.tree_view, run, self._processes, call.query("seen"))

    async def _node(self, call: Call) -> BaseModel:
        run, wanted = await self._run(call), call.path("node")
        if wanted not in run.state.journal:
            raise missing("Node", wanted[:64])
        return await asyncio.to_thread(views.node_view, run, run.state.journal[wanted])

    async def _start(self, call: Call) -> BaseModel:
        require_admin(call.user, "Searches")
        wanted = call.read(models.NewSearch)
        name = await self._processes.start(wanted.idea, wanted.files, _options(wanted))
        return models.SearchName(name=name)

    async def _stop(self, call: Call) -> BaseModel:
        name = (await self._run(call)).places.folder.name
        self._processes.stop(name)
        return models.SearchName(name=name)

    async def _resume(self, call: Call) -> BaseModel:
        wanted, run = call.read(models.SearchLimits), await self._run(call)
        name = run.places.folder.name
        if self._processes.is_running(name) or run.is_worked_on:
            raise conflict(f"The run {name} is being worked on.")
        if run.state.is_over and not (run.state.is_spent or run.state.has_waiting_plots):
            raise conflict(f"The run {name} is over: {run.state.reason}.")
        await self._processes.resume(name, _options(wanted))
        return models.SearchName(name=name)

    async def _continue(self, call: Call) -> BaseModel:
        if call.user.name != LOCAL_USER:
            raise not_found("Attempts are continued by the person who started the server.")
        node = f"{call.path('run')}/{call.path('node')}"
        session_id = await asyncio.to_thread(session_on_node, self._sessions.app, node)
        index = (await self._sessions.of(call.user)).index
        await index.calls.change(partial(index.add_session, session_id, f"Continues {node}"))
        return SessionId(session_id=session_id)

    async def _run(self, call: Call) -> ReadRun:
        require_admin(call.user, "Searches")
        return await asyncio.to_thread(self._reader.find, call.path("run"))


def _options(limits: models.SearchLimits) -> list[str]:
    """Return limits as options of the command."""
    found = {
        "--steps": limits.steps,
        "--time": limits.seconds and f"{limits.seconds}s",
        "--budget": limits.cost and f"{limits.cost:f}",
        "--tokens": limits.tokens,
    }
    return [f"{name}={value}" for name, value in found.items() if value is not None]
