"""Sessions of the person who started the program, for the tools on standard input and output."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.from_thread
import anyio.to_thread

from taskweaver.app.service import AppService, RoundResult
from taskweaver.doors.mcp.tools import PlayedRound, Progress, RoundKind
from taskweaver.session.session import Session

T = TypeVar("T")

_AGAIN_S = 1.0


class LocalSessions:
    """The sessions of an application; see `ToolSessions`."""

    def __init__(self, service: AppService) -> None:
        self._service = service
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def play(
        self, kind: RoundKind, text: str, session: str, branch: str, report: Progress
    ) -> PlayedRound:
        """Play a round in a thread; interrupt it when the caller cancels.

        Rounds of a session wait for each other: models call tools side by side.
        """
        async with self._turn(session):
            opened = await _blocking(lambda: self._service.open(session, branch))
            result = await self._played(kind, text, opened, report)
        folder = opened.at(result.branch).execution_cwd
        names = tuple(str(Path(file).relative_to(folder)) for file in result.files)
        return PlayedRound(result, folder, names)

    def _turn(self, session: str) -> anyio.Lock:
        """Return the lock of a session; a new one has no id yet, and nobody waits for it."""
        return self._turns.setdefault(session, anyio.Lock()) if session else anyio.Lock()

    async def _played(
        self, kind: RoundKind, text: str, opened: Session, report: Progress
    ) -> RoundResult:
        play = self._service.ask if kind == "ask" else self._service.run_code
        has_begun, has_ended = threading.Event(), threading.Event()

        def report_here(status: str) -> None:
            anyio.from_thread.run(report, status)

        def run() -> RoundResult:
            has_begun.set()
            try:
                return play(opened, text, report_here)
            finally:
                has_ended.set()

        try:
            return await _blocking(run)
        except anyio.get_cancelled_exc_class():
            opened.interrupt()
            with anyio.CancelScope(shield=True):  # the next call finds the session at rest
                while has_begun.is_set() and not await _blocking(partial(has_ended.wait, _AGAIN_S)):
                    opened.interrupt()  # the round had not begun before
            raise

    async def fork(self, session: str, name: str) -> str:
        """Fork a session; return the name of the branch."""
        async with self._turn(session):
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
