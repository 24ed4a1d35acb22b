"""The client of the package `agent-client-protocol`, as a person at an editor.

The package takes long to import; it is imported where it is used, for the tests that use it alone.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from patience import PATIENCE_S


def command(project: Path) -> list[str]:
    return [sys.executable, "-m", "taskweaver", "-p", str(project), "acp"]


def environment() -> dict[str, str]:
    """Return the environment of the agent, without keys."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_STATE_HOME", "MPLBACKEND")}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "LLM_AUTO_DETECT": "false"}


class Editor:
    """A client that keeps the updates, and answers requests for permission.

    Its answer is the id of an option; an empty one dismisses the request, None leaves it open.
    """

    def __init__(self) -> None:
        self.updates: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[dict[str, Any]] = []
        self.answer: str | None = "yes"
        self._changed = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        """Take the connection."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update.model_dump(mode="json", exclude_none=True)))
        self._changed.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> Any:
        from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

        assert [option.option_id for option in options] == ["yes", "always", "no"]
        self.asked.append({"session": session_id, "call": tool_call.tool_call_id})
        self._changed.set()
        while self.answer is None:
            await self._next()
        if not self.answer:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = AllowedOutcome(outcome="selected", option_id=self.answer)
        return RequestPermissionResponse(outcome=chosen)

    def decide(self, answer: str) -> None:
        """Answer the requests that are open, and those to come."""
        self.answer = answer
        self._changed.set()

    def of(self, session_id: str, kind: str) -> list[dict[str, Any]]:
        """Return the updates of a kind that came for a session."""
        own = [update for of_session, update in self.updates if of_session == session_id]
        return [update for update in own if update["session_update"] == kind]

    def text(self, session_id: str, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.of(session_id, kind))

    async def until(self, is_there: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not is_there():
                await self._next()

    async def _next(self) -> None:
        self._changed.clear()
        await self._changed.wait()


@asynccontextmanager
async def editing(project: Path, log: Path, **settings: str) -> AsyncIterator[tuple[Any, Editor]]:
    """Give the connection to an agent that was started with settings, and the editor."""
    import acp

    editor = Editor()
    with log.open("ab") as errors:
        options: dict[str, Any] = {"stderr": errors, "shutdown_timeout": PATIENCE_S}
        more: dict[str, Any] = {"transport_kwargs": options, "use_unstable_protocol": True}
        started = acp.spawn_agent_process(
            editor,  # type: ignore[arg-type]
            *command(project),
            env=environment() | settings,
            **more,
        )
        async with started as (agent, process):
            capable = await agent.initialize(protocol_version=1)
            assert capable.protocol_version == 1
            yield agent, editor
        assert process.returncode == 0, log.read_text()
        assert "Traceback" not in log.read_text()
