"""Operations on the runs of tree searches: start, watch, stop, and a chat with an attempt."""

from __future__ import annotations

import asyncio
from functools import partial

from taskweaver.doors.agent_api import search_views as views
from taskweaver.doors.agent_api.models import SessionId
from taskweaver.doors.agent_api.routes import PREFIX, AgentOperations, require_admin
from taskweaver.doors.agent_api.search_processes import SearchProcesses
from taskweaver.doors.agent_api.search_views import ReadRun, RunReader
from taskweaver.server.accounts import LOCAL_USER
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import conflict, not_found
from taskweaver.server.operations import Call, missing, operation
from taskweaver.treesearch.service import session_on_node

_SEARCHES = f"{PREFIX}/searches"
_RUN = f"{_SEARCHES}/{{run}}"
_NODE = f"{_RUN}/nodes/{{node}}"
_SEEN = {"seen": "Version of the attempts that the client has; they are left out if it is theirs"}


class SearchOperations(AgentOperations):
    """Operations on searches. They are the project's: an admin has them, no other user does."""

    def __init__(self, sessions: AgentSessions, processes: SearchProcesses) -> None:
        super().__init__(sessions)
        self._processes = processes
        self._reader = RunReader(sessions.app)

    @operation("GET", _SEARCHES, "Runs of tree searches, the newest first", problems=(404,))
    async def _list(self, call: Call) -> views.SearchRuns:
        require_admin(call.user, "Searches")
        found = await asyncio.to_thread(lambda: list(self._reader.every()))
        return views.SearchRuns(runs=[views.run_view(run, self._processes) for run in found])

    @operation("GET", _RUN, "A run with all its attempts", query=_SEEN, problems=(404,))
    async def _show(self, call: Call) -> views.SearchTree:
        run = await self._run(call)
        return await asyncio.to_thread(views.tree_view, run, self._processes, call.query("seen"))

    @operation(
        "GET",
        _NODE,
        "An attempt, with plan, program, changes, output, logs and error",
        problems=(404,),
    )
    async def _node(self, call: Call) -> views.SearchNode:
        run, wanted = await self._run(call), call.path("node")
        if wanted not in run.state.journal:
            raise missing("Node", wanted[:64])
        return await asyncio.to_thread(views.node_view, run, run.state.journal[wanted])

    @operation(
        "POST",
        _SEARCHES,
        "Start a search of an idea; it ends with the server, and can be gone on with",
        status=201,
        problems=(404, 409),
    )
    async def _start(self, call: Call, wanted: views.NewSearch) -> views.SearchName:
        require_admin(call.user, "Searches")
        name = await self._processes.start(wanted.idea, wanted.files, _options(wanted))
        return views.SearchName(name=name)

    @operation(
        "POST", f"{_RUN}/stop", "Stop a search cleanly; what is being tried is given up", status=202
    )
    async def _stop(self, call: Call) -> views.SearchName:
        name = (await self._run(call)).places.folder.name
        self._processes.stop(name)
        return views.SearchName(name=name)

    @operation(
        "POST",
        f"{_RUN}/resume",
        "Go on with a run that was stopped, or with new limits where they were reached",
        status=202,
    )
    async def _resume(self, call: Call, wanted: views.SearchLimits) -> views.SearchName:
        run = await self._run(call)
        name = run.places.folder.name
        if self._processes.is_running(name) or run.is_worked_on:
            raise conflict(f"The run {name} is being worked on.")
        if run.state.is_over and not (run.state.is_spent or run.state.has_waiting_plots):
            raise conflict(f"The run {name} is over: {run.state.reason}.")
        await self._processes.resume(name, _options(wanted))
        return views.SearchName(name=name)

    @operation(
        "POST",
        f"{_NODE}/session",
        "Make a session that continues an attempt; for the person who started the server",
        status=201,
        problems=(404,),
    )
    async def _continue(self, call: Call) -> SessionId:
        if call.user.name != LOCAL_USER:
            raise not_found("Attempts are continued by the person who started the server.")
        node = f"{call.path('run')}/{call.path('node')}"
        # A separate session: the sessions of this server are those of its sessions folder.
        continued = partial(session_on_node, self._sessions.app, node, is_detached=True)
        session_id = await asyncio.to_thread(continued)
        index = (await self._own(call)).index
        await index.calls.change(partial(index.add_session, session_id, f"Continues {node}"))
        return SessionId(session_id=session_id)

    async def _run(self, call: Call) -> ReadRun:
        require_admin(call.user, "Searches")
        return await asyncio.to_thread(self._reader.find, call.path("run"))


def _options(limits: views.SearchLimits) -> list[str]:
    """Return limits as options of the command."""
    found = {
        "--steps": limits.steps,
        "--time": limits.seconds and f"{limits.seconds}s",
        "--budget": limits.cost and f"{limits.cost:f}",
        "--tokens": limits.tokens,
    }
    return [f"{name}={value}" for name, value in found.items() if value is not None]
