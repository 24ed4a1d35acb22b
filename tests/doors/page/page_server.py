"""A server with the page, and a model that does what questions say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from agents import SteeredModel, serving_agents
from served import Served
from support import planner_reply

from taskweaver.doors.page.door import PageDoor
from taskweaver.llm.types import ChatMessage

PLAN = "1. look\n2. compute\n3. tell"


class DirectedModel(SteeredModel):
    """A model that answers ``say: X end`` with X, and runs ``cell: CODE end`` before it answers.

    It remembers X of ``note: X end``. ``wait NAME`` inside of an answer waits until it is let go.
    """

    def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Answer."""
        text = str(messages[-1]["content"])
        asked = re.findall(r"(say|cell|note): (.*?)(?= end\b)", text, re.DOTALL)
        if not asked:
            return planner_reply("User", "I ran it.", plan=PLAN, current_plan_step="3. tell")
        kind, wanted = asked[-1]
        wanted = wanted.replace("\\n", "\n").replace('\\"', '"')
        for name in re.findall(r"wait (\w+)", wanted):
            self._wait(name)
        if kind == "say":
            return planner_reply("User", wanted, plan=PLAN, current_plan_step="3. tell")
        if kind == "note":
            return planner_reply("User", "Noted.", remember=wanted)
        step = {"plan": PLAN, "current_plan_step": "2. compute", "plan_reasoning": "a cell tells"}
        return planner_reply("CodeInterpreter", "Compute it", code=wanted, **step)


def page_server(
    folder: Path, model: DirectedModel, config: Mapping[str, Any] | None = None
) -> AbstractContextManager[Served]:
    return serving_agents(folder, model, config, more=lambda made: [PageDoor(made)])


def start_address(server: Served) -> str:
    return f"{server.url}/#token={server.token.text}"
