"""Operations on the runs of tree searches: start, watch, stop, and a chat with an attempt."""

from __future__ import annotations

import asyncio

from taskweaver.doors.agent_api import search_views as views
from taskweaver.doors.agent_api.models import ContinuedAttempt
from taskweaver.doors.agent_api.routes import PREFIX, AgentOperations
from taskweaver.doors.agent_api.search_processes import SearchProcesses
from taskweaver.doors.agent_api.search_trials import NewTrial, ProgramTrial, ProgramTrials
from taskweaver.doors.agent_api.search_views import ReadRun, every_run, named_run
from taskweaver.server.accounts import LOCAL_USER
from taskweaver.server.admission import User
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import conflict, not_found
from taskweaver.server.operations import Call, missing, operation
from taskweaver.session.storage.layout import RUN, layout_of
from taskweaver.treesearch.service import session_on_node

_SEARCHES = f"{PREFIX}/searches"
_RUN = f"{_SEARCHES}/{{run}}"
_NODE = f"{_RUN}/nodes/{{node}}"
_SEEN = {"seen": "Version of the attempts that the client has; they are left out if it is theirs"}


class SearchOperations(AgentOperations):
    """Operations on searches. They are the project's: an admin has them, no other user does."""

    of_admins = "Searches"

    def __init__(
        self, sessions: AgentSessions, processes: SearchProcesses, trials: ProgramTrials
    ) -> None:
        super().__init__(sessions)
        self._processes = processes
        self._trials = trials
        self._forking = asyncio.Lock()

    @operation("GET", _SEARCHES, "Runs of tree searches, the newest first")
    async def _list(self, _call: Call) -> views.SearchRuns:
        found = await asyncio.to_thread(lambda: list(every_run(self._sessions.app)))
        return views.SearchRuns(runs=[views.run_view(run, self._processes) for run in found])

    @operation("GET", _RUN, "A run with all its attempts", query=_SEEN)
    async def _show(self, call: Call) -> views.SearchTree:
        run = await self._run(call)
        return await asyncio.to_thread(views.tree_view, run, self._processes, call.query("seen"))

    @operation(
        "GET",
        _NODE,
        "An attempt, with plan, program, changes, output, logs and error",
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
    )
    async def _start(self, _call: Call, wanted: views.NewSearch) -> views.SearchName:
        name = await self._processes.start(wanted.idea, wanted.files, wanted.data, _options(wanted))
        return views.SearchName(name=name)

    @operation(
        "POST",
        f"{_SEARCHES}/trial",
        "Run a program once, as attempts run",
    )
    async def _try(self, _call: Call, wanted: NewTrial) -> ProgramTrial:
        return await self._trials.run(wanted)

    @operation(
        "POST",
        f"{_RUN}/stop",
        "Stop a search cleanly; what is being tried is given up",
        status=202,
        is_end=True,
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
        if not self._processes.of(name).has_ended or run.is_worked_on:
            raise conflict(f"The run {name} is being worked on.")
        if run.state.is_over and not (run.state.is_spent or run.state.has_waiting_plots):
            raise conflict(f"The run {name} is over: {run.state.reason}.")
        await (await self._sessions.of(User(LOCAL_USER))).let_go(name)
        await self._processes.resume(name, _options(wanted))
        return views.SearchName(name=name)

    @operation(
        "POST",
        f"{_NODE}/session",
        "Fork an attempt into a branch that continues it; for the person who started the server",
        status=201,
    )
    async def _continue(self, call: Call) -> ContinuedAttempt:
        if call.user.name != LOCAL_USER:
            raise not_found("Attempts are continued by the person who started the server.")
        node = f"{call.path('run')}/{call.path('node')}"
        own = await self._own(call)
        async with self._forking:  # an attempt is forked by one request at a time
            session, branch = await asyncio.to_thread(session_on_node, self._sessions.app, node)
        id_ = session.session_id
        await own.index.calls.change(own.index.add_session, id_, f"Continues {node}")
        await own.conversation(id_)  # counted, and closed when idle or for a search that goes on
        is_copy = layout_of(session.workspace) is not RUN
        return ContinuedAttempt(session_id=id_, branch=branch, is_copy=is_copy)

    async def _run(self, call: Call) -> ReadRun:
        return await asyncio.to_thread(named_run, self._sessions.app, call.path("run"))


def _options(limits: views.SearchLimits) -> list[str]:
    """Return limits as options of the command."""
    found = {
        "--steps": limits.steps,
        "--time": limits.seconds and f"{limits.seconds}s",
        "--budget": limits.cost and f"{limits.cost:f}",
        "--tokens": limits.tokens,
    }
    return [f"{name}={value}" for name, value in found.items() if value is not None]
