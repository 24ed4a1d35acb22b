"""Calls of a database from the event loop, which waits for no network, and for no disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from taskweaver.server.databases.statements import ServerDatabase

T = TypeVar("T")


class LoopCalls:
    """Calls of a database. What is called runs to its end, also if who awaits it is cancelled.

    Used in the event loop's thread alone.
    """

    def __init__(self, database: ServerDatabase) -> None:
        self._threads = database.threads
        self._turn = asyncio.Lock()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Read or change the database in one of its threads."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._threads, work))

    async def in_turn(self, work: Callable[[], Awaitable[T]]) -> T:
        """Work after other work in turn: no two threads wait for the database's lock of a user."""

        async def work_in_turn() -> T:
            async with self._turn:
                return await work()

        return await asyncio.shield(asyncio.ensure_future(work_in_turn()))

    async def change(self, work: Callable[[], T]) -> T:
        """Change the database in a thread, in turn."""
        return await self.in_turn(lambda: self.in_thread(work))

    async def settle(self) -> None:
        """Wait for the work whose turn it is, and for that which waits for its turn now."""
        async with self._turn:
            pass
