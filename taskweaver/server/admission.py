"""Admission of work that occupies the machine: a bounded queue per user, served in turn."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from taskweaver.server.errors import RequestRefused, stopping


class Admission:
    """A number of places for running work. Users who wait get a free place in turn.

    One user's hundred requests delay another's first by one place at most. Used in the event
    loop's thread alone.
    """

    def __init__(self, places: int, queue_per_user: int = 64) -> None:
        """Begin with `places` free places. At most `queue_per_user` requests of a user wait."""
        self._free = places
        self._queue_per_user = queue_per_user
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self.is_stopping = False

    @asynccontextmanager
    async def place(self, user: str) -> AsyncIterator[None]:
        """Hold a place inside the block, after a wait if needed.

        Raises:
            RequestRefused: If too many requests of the user wait, or the server stops.
        """
        await self._enter(user)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, user: str) -> None:
        if self.is_stopping:
            raise stopping()
        if self._free and not self._queues:
            self._free -= 1
            return
        queue = self._queues.setdefault(user, deque())
        if len(queue) >= self._queue_per_user:
            detail = f"{len(queue)} requests of {user} wait already."
            raise RequestRefused(429, "queue-full", detail, retry_after_s=1)
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave()  # the place was given in the moment of the cancellation
            else:
                self._withdraw(user, turn)
            raise

    def _withdraw(self, user: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(user)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._queues[user]

    def _leave(self) -> None:
        """Give a place to the next user, or free the place."""
        while self._queues:
            user, queue = self._queues.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._queues[user] = queue  # at the end: the others come first
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def stop(self) -> None:
        """Refuse the requests that wait, and all that come."""
        self.is_stopping = True
        queues, self._queues = self._queues, OrderedDict()
        for turn in (turn for queue in queues.values() for turn in queue):
            if not turn.done():
                turn.set_exception(stopping())
