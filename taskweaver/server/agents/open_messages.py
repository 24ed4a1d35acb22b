"""Messages of a session that are not answered yet, and the streams that wait for their ends."""

from __future__ import annotations

import asyncio
from collections import deque

from taskweaver.logging.log import TelemetryLogger
from taskweaver.module.event_emitter import RoundEventType, TaskWeaverEvent
from taskweaver.server.admission import HeldShare
from taskweaver.server.agents.following import StreamEnd
from taskweaver.server.agents.index import AgentIndex, IndexedMessage, Listeners
from taskweaver.server.errors import ServerError


class RoundEnds:
    """The first listener of a session, which knows the branches whose newest round is over.

    A client that finds the end of a round in the log of events may change the branch at once,
    although the message of the round ends a little later. So this hears of it before the log does.

    Attributes:
        over: Names of the branches.
    """

    def __init__(self) -> None:
        self.over: set[str] = set()

    def handle(self, event: TaskWeaverEvent) -> None:
        """Handle an event. A round of foreign cells may come before the round of a message."""
        if event.t is RoundEventType.round_start:
            self.over.discard(event.branch)
        elif event.t is RoundEventType.round_end:
            self.over.add(event.branch)


class OpenMessages(Listeners):
    """Open messages, and their shares. Listeners are called after each end. Thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self._shares: dict[str, HeldShare] = {}

    def __contains__(self, message_id: str) -> bool:
        """Return whether a message is open."""
        return message_id in self._shares

    def add(self, message_id: str, share: HeldShare) -> None:
        """Add a message, and hold a share of the user's for it."""
        self._shares[message_id] = share

    def discard(self, message_id: str) -> None:
        """Leave out a message that was refused."""
        self._shares.pop(message_id, HeldShare()).close()

    def end(self, message_id: str) -> None:
        """Let streams of a message's answer end, now that the outcome is written."""
        self.discard(message_id)
        self.wake()

    def end_of(self, message_id: str) -> StreamEnd:
        """Return the end of a stream that lasts as long as a message is open."""
        return StreamEnd(lambda: message_id not in self._shares, self)


class WaitingMessages:
    """Messages that wait, in their order on each branch. Used in the event loop's thread alone."""

    def __init__(self, index: AgentIndex, open_: OpenMessages, log: TelemetryLogger) -> None:
        self._index = index
        self._open = open_
        self._log = log
        self._queues: dict[str, deque[IndexedMessage]] = {}
        self._cut: deque[tuple[str, str]] = deque()
        self._withdrawing = asyncio.Lock()

    def count(self, branch: str) -> int:
        """Return how many wait on a branch."""
        return len(self._queues.get(branch, ()))

    def __bool__(self) -> bool:
        """Return whether one waits."""
        return any(self._queues.values())

    def add(self, message: IndexedMessage) -> None:
        """Add a message to the branch."""
        self._queues.setdefault(message.branch, deque()).append(message)

    async def take(self, branch: str) -> IndexedMessage | None:
        """Take the next message of a branch, after any message that is being withdrawn, or None.

        Nothing else runs in the event loop between this and what the caller does next.
        """
        async with self._withdrawing:
            queue = self._queues.get(branch)
            return queue.popleft() if queue else None

    async def withdraw(self, message_id: str) -> bool:
        """Withdraw a message, in a turn of the index, and return whether the message waited."""
        async with self._withdrawing:
            waiting = [one for queue in self._queues.values() for one in queue]
            found = next((one for one in waiting if one.id == message_id), None)
            if found is None:
                return False
            await self._index.calls.in_thread(self._index.update, message_id, state="withdrawn")
            if found in self._queues[found.branch]:  # else it was cut meanwhile
                self._queues[found.branch].remove(found)
            self._open.end(message_id)
            return True

    def cut(self, answer: str, branch: str | None = None) -> None:
        """Cut the messages of a branch, or all. `end_cut` writes this answer."""
        for queue in self._queues.values() if branch is None else [self._queues[branch]]:
            self._cut.extend((one.id, answer) for one in queue)
            queue.clear()

    async def end_cut(self) -> None:
        """Write the ends of the messages that were cut. Failures are in the log."""
        await self._index.calls.in_turn(self._end_cut)

    async def _end_cut(self) -> None:
        while self._cut:
            message_id, answer = self._cut.popleft()
            if message_id in self._open:  # else it was withdrawn meanwhile
                update = self._index.update
                try:
                    await self._index.calls.in_thread(
                        update, message_id, state="stopped", answer=answer
                    )
                except ServerError:  # its server has ended for others
                    self._log.exception(f"the outcome of message {message_id} is not written")
                self._open.end(message_id)
