"""A server with the page, and a model that does what questions say."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from served import LIMIT_S, Served, served
from support import make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.agent_api.door import AgentApi
from taskweaver.doors.page.door import PageDoor
from taskweaver.llm.types import ChatMessage
from taskweaver.server.accounts import Accounts
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.operations import Door

PLAN = "1. look\n2. compute\n3. tell"


class DirectedModel:
    """A model that answers ``say: X`` with X, and runs ``cell: CODE`` before it answers.

    ``wait NAME`` inside of an answer waits until it is let go.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked: set[str] = set()
        self._free: set[str] = set()

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Answer."""
        text = str(messages[-1]["content"])
        asked = re.findall(r"(say|cell): (.*?)(?= end\b)", text, re.DOTALL)
        if not asked:
            return planner_reply("User", "I ran it.", plan=PLAN, current_plan_step="3. tell")
        kind, wanted = asked[-1]
        wanted = wanted.replace("\\n", "\n").replace('\\"', '"')
        for name in re.findall(r"wait (\w+)", wanted):
            self._wait(name)
        if kind == "say":
            return planner_reply("User", wanted, plan=PLAN, current_plan_step="3. tell")
        step = {"plan": PLAN, "current_plan_step": "2. compute", "plan_reasoning": "a cell tells"}
        return planner_reply("CodeInterpreter", "Compute it", code=wanted, **step)

    def _wait(self, name: str) -> None:
        with self._changed:
            self._asked.add(name)
            self._changed.notify_all()
            self._changed.wait_for(lambda: name in self._free, LIMIT_S)

    def await_question(self, name: str) -> None:
        """Wait until an answer waits."""
        with self._changed:
            assert self._changed.wait_for(lambda: name in self._asked, LIMIT_S), name

    def let_go(self, name: str) -> None:
        """Let an answer go on."""
        with self._changed:
            self._free.add(name)
            self._changed.notify_all()


@contextmanager
def page_server(
    folder: Path, model: DirectedModel, config: Mapping[str, Any] | None = None, port: int = 0
) -> Iterator[Served]:
    """Serve the page and the agent API of a project in a folder, made if there is none."""
    project = folder / "project"
    if not project.exists():
        make_project(project, {"execution.zygote": True, **(config or {})})

    def doors(accounts: Accounts) -> list[Door]:
        sessions = AgentSessions(app, accounts, folder / "agents")
        return [AgentApi(sessions), PageDoor(sessions)]

    with TaskWeaverApp(project, model=model) as app, served(doors, folder, port=port) as running:
        yield running


def start_address(server: Served) -> str:
    """Return the address that a browser opens at first, with the token."""
    return f"{server.url}/#token={server.token.text}"
