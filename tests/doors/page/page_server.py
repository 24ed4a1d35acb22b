"""A server with the page, and a model that does what questions say."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agents import SteeredModel, serving_agents
from patience import PATIENCE_S
from ports import free_port
from served import Served
from support import planner_reply

from taskweaver.doors.page.door import PageDoor
from taskweaver.llm.types import ChatMessage
from taskweaver.server.errors import ServerError

_PORTS: list[int] = []
"""The port of the newest server, if there was one: the browser has the page's files from it."""
PLAN = "1. look\n2. compute\n3. tell"


class DirectedModel(SteeredModel):
    """A model that answers ``say: X end`` with X, and runs ``cell: CODE end`` before it answers.

    ``wait NAME`` inside of an answer waits until it is let go.
    """

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
            self._asked.append(name)
            self._changed.notify_all()
            self._changed.wait_for(lambda: name in self._free, PATIENCE_S)


@contextmanager
def page_server(
    folder: Path, model: DirectedModel, config: Mapping[str, Any] | None = None
) -> Iterator[Served]:
    """Serve the page and the agent API of a project in a folder."""

    def serving(port: int) -> AbstractContextManager[Served]:
        return serving_agents(folder, model, config, port, more=lambda made: [PageDoor(made)])

    with ExitStack() as stack:
        try:
            running = stack.enter_context(serving(_familiar_port()))
        except ServerError:  # the port has been taken meanwhile
            running = stack.enter_context(serving(0))
        _PORTS[:] = [urlsplit(running.url).port or 0]
        yield running


def _familiar_port() -> int:
    """Return the port of the server before, if nobody has taken it; else a free one.

    A page's first load from a port costs three times as much as another one.
    """
    for port in _PORTS:
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    return free_port()


def start_address(server: Served) -> str:
    """Return the address that a browser opens at first, with the token."""
    return f"{server.url}/#token={server.token.text}"
