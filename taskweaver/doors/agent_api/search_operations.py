"""Operations on the runs of tree searches: list, read, and a chat that continues an attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pydantic import BaseModel

from taskweaver.app.search_service import find_run, runs, session_on_node
from taskweaver.doors.agent_api import models
from taskweaver.doors.agent_api.routes import PREFIX
from taskweaver.server.accounts import User
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import not_found
from taskweaver.server.gate import LOCAL_USER
from taskweaver.server.operations import ApiOperation, Call, missing
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.node import Node
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.treesearch.record.runlog import is_worked_on, read_log
from taskweaver.treesearch.record.state import RunState, fold
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

_SEARCHES = f"{PREFIX}/searches"
_RUN = f"{_SEARCHES}/{{run}}"
_NODE = f"{_RUN}/nodes/{{node}}"


class SearchOperations:
    """Operations on searches. They are the project's: an admin reads them, no other user does.

    Attributes:
        operations: The operations.
    """

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self.operations = [
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
                answer=models.SearchTree,
                problems=(404,),
            ),
            ApiOperation(
                "GET",
                _NODE,
                self._node,
                "An attempt, with plan, program, output and error",
                answer=models.SearchNode,
                problems=(404,),
            ),
            ApiOperation(
                "POST",
                f"{_NODE}/session",
                self._continue,
                "Make a session that continues an attempt; for the person who started the server",
                answer=models.SessionId,
                status=201,
                problems=(404,),
            ),
        ]

    async def _list(self, call: Call) -> BaseModel:
        _require_reader(call.user)
        found = await asyncio.to_thread(lambda: list(self._summaries()))
        return models.SearchRuns(runs=found)

    def _summaries(self) -> Iterator[models.SearchRun]:
        for places in runs(self._sessions.app):
            try:
                state = fold(read_log(places.log))
            except SearchError:  # the command line names the reason
                continue
            if state is not None:
                yield _summary(places, state)

    async def _show(self, call: Call) -> BaseModel:
        places, state = await self._run(call)
        nodes = [_brief(node) for node in state.journal.nodes]
        return models.SearchTree(run=_summary(places, state), nodes=nodes)

    async def _node(self, call: Call) -> BaseModel:
        _, state = await self._run(call)
        wanted = call.path("node")
        if wanted not in state.journal:
            raise missing("Node", wanted[:64])
        details = await asyncio.to_thread(redact_secrets_in, state.journal[wanted].to_dict())
        return models.SearchNode(node=details)

    async def _continue(self, call: Call) -> BaseModel:
        if call.user.name != LOCAL_USER:
            raise not_found("Attempts are continued by the person who started the server.")
        node = f"{call.path('run')}/{call.path('node')}"
        session_id = await asyncio.to_thread(session_on_node, self._sessions.app, node)
        self._sessions.of(call.user).index.add_session(session_id, f"Continues {node}")
        return models.SessionId(session_id=session_id)

    async def _run(self, call: Call) -> tuple[RunPlaces, RunState]:
        _require_reader(call.user)

        def read() -> tuple[RunPlaces, RunState | None]:
            places = find_run(self._sessions.app, call.path("run"))
            return places, fold(read_log(places.log))

        places, state = await asyncio.to_thread(read)
        if state is None:
            raise missing("Run", call.path("run")[:128])
        return places, state


def _require_reader(user: User) -> None:
    if user.role != "admin":
        raise not_found("Searches are read by admins.")


def _summary(places: RunPlaces, state: RunState) -> models.SearchRun:
    best = state.journal.best()
    is_running = not state.is_over and is_worked_on(places.log)
    return models.SearchRun(
        name=places.folder.name,
        title=redact_secrets(state.title),
        state="over" if state.is_over else "running" if is_running else "stopped",
        nodes=len(state.journal),
        metric=state.journal.objective.name,
        maximize=state.journal.objective.maximize,
        best=best.id if best else "",
        best_value=best.value if best else None,
        started_at=state.started_at,
        seconds=state.seconds,
    )


def _brief(node: Node) -> models.SearchNodeSummary:
    return models.SearchNodeSummary(
        node=node.id,
        parent=node.parent,
        kind=node.kind.value,
        stage=node.stage,
        status=node.status.value,
        value=node.value,
        plan=redact_secrets(node.plan.strip().partition("\n")[0][:120]),
        seconds=node.exec_seconds,
    )
