"""Sessions of the person who started the program, for the tools on standard input and output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio.from_thread
import anyio.to_thread

from taskweaver.app.service import AppService
from taskweaver.doors.mcp.tools import PlayedRound, Progress, RoundKind

T = TypeVar("T")


class LocalSessions:
    """The sessions of an application; see `ToolSessions`."""

    def __init__(self, service: AppService) -> None:
        self._service = service

    async def play(
        self, kind: RoundKind, text: str, session: str, branch: str, report: Progress
    ) -> PlayedRound:
        """Play a round in a thread; interrupt it when the caller cancels."""
        service = self._service
        opened = await _blocking(lambda: service.open(session, branch))
        play = service.ask if kind == "ask" else service.run_code

        def report_here(status: str) -> None:
            anyio.from_thread.run(report, status)

        try:
            result = await _blocking(lambda: play(opened, text, report_here))
        except anyio.get_cancelled_exc_class():
            opened.interrupt()
            raise
        folder = opened.at(result.branch).execution_cwd
        names = tuple(str(Path(file).relative_to(folder)) for file in result.files)
        return PlayedRound(result, folder, names)

    async def fork(self, session: str, name: str) -> str:
        """Fork a session; return the name of the branch."""
        return await _blocking(lambda: self._service.fork(session, name))

    async def remember(self, fact: str, session: str) -> str:
        """Keep a fact on a session's current branch; return the outcome."""
        service = self._service
        return await _blocking(lambda: service.open(session).long_memory.remember(fact))

    async def search(self, query: str, session: str) -> list[dict[str, Any]]:
        """Return messages and stored memory that contain a word of the query."""
        return await _blocking(lambda: self._service.memory_search(query, session))

    async def listed(self) -> list[dict[str, Any]]:
        """Return the sessions, the newest first."""
        return await _blocking(self._service.sessions)


async def _blocking(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
