"""Events of a round as an asynchronous iterator, while a thread plays the round.

The thread waits when `MOST_WAITING` events are unread, so that a slow reader is not overrun. A
reader that leaves early interrupts the round; closing waits for the end of the thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from taskweaver.module.event_emitter import SessionEventHandler, TaskWeaverEvent
from taskweaver.utils.system.forks import bind_to_process

MOST_WAITING = 256
"""Events that may wait for their reader."""


class _EventQueue:
    """Queue from the thread of a round to a task of an event loop; a handler of events.

    Attributes:
        failure: The error that the round ended with; None for none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, interrupt: Callable[[], None]) -> None:
        self.failure: BaseException | None = None
        self._loop = loop
        self._interrupt = interrupt
        self._events: deque[TaskWeaverEvent] = deque()
        self._changed = threading.Condition()
        self._wake = asyncio.Event()
        self._is_left = False
        self._is_done = False

    def handle(self, event: TaskWeaverEvent) -> None:
        """Put an event into the queue; interrupt the round if the reader has left."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_left or len(self._events) < MOST_WAITING)
            is_left = self._is_left
            if not is_left:
                self._events.append(event)
                self._ring()
        if is_left:  # an interrupt before the round's begin has had no effect
            self._interrupt()

    def fill(self, play: Callable[[SessionEventHandler], object]) -> None:
        """Play a round, unless the reader has left, and let the reader come to its end."""
        try:
            with self._changed:
                is_left = self._is_left
            if not is_left:
                play(self)
        except BaseException as error:  # noqa: BLE001 - raised in the reader
            self.failure = error
        finally:
            with self._changed:
                self._is_done = True
                self._ring()

    def leave(self) -> None:
        """Take no further events; a round that has not ended is interrupted."""
        with self._changed:
            is_open = not self._is_done
            self._is_left = True
            self._events.clear()
            self._changed.notify_all()
        if is_open:
            self._interrupt()

    async def next(self) -> TaskWeaverEvent | None:
        """Return the next event; None after the last."""
        while True:
            with self._changed:
                if self._events:
                    event = self._events.popleft()
                    self._changed.notify_all()
                    return event
                if self._is_done:
                    return None
                self._wake.clear()
            await self._wake.wait()

    async def ended(self) -> None:
        """Wait for the end of the round."""
        while await self.next() is not None:
            pass

    def _ring(self) -> None:
        with suppress(RuntimeError):  # the loop was closed: there is no reader any more
            self._loop.call_soon_threadsafe(self._wake.set)


class RoundEvents:
    """The events of a round in order, to its end: an asynchronous iterator.

    The round begins with the first event that is asked for. Close the iterator, or use it as an
    asynchronous context manager, where the round must have ended before the next statement; one
    that is dropped interrupts its round as well.
    """

    def __init__(
        self, play: Callable[[SessionEventHandler], object], interrupt: Callable[[], None]
    ) -> None:
        """Prepare a round.

        Args:
            play: Plays it and passes its events to a handler; its error is raised after them.
            interrupt: Interrupts it, from any thread.
        """
        self._play = play
        self._interrupt = interrupt
        self._queue: _EventQueue | None = None
        self._thread: threading.Thread | None = None
        self._is_over = False
        bind_to_process(self)

    def __aiter__(self) -> RoundEvents:
        return self

    async def __anext__(self) -> TaskWeaverEvent:
        """Return the next event; raise the error of the round after the last."""
        if self._is_over:
            raise StopAsyncIteration
        queue = self._queue or self._begin()
        try:
            event = await queue.next()
        except BaseException:
            await self.aclose()
            raise
        if event is not None:
            return event
        await self.aclose()
        if queue.failure is not None:
            raise queue.failure
        raise StopAsyncIteration

    def _begin(self) -> _EventQueue:
        queue, play = _EventQueue(asyncio.get_running_loop(), self._interrupt), self._play

        def run() -> None:  # holds no reference to the iterator, which may be dropped
            queue.fill(play)

        self._queue = queue
        self._thread = threading.Thread(target=run, name="taskweaver-stream")
        self._thread.start()
        return queue

    async def aclose(self) -> None:
        """Interrupt the round if it has not ended, and wait for its end."""
        self._is_over = True
        if self._queue is None or self._thread is None:
            return
        self._queue.leave()
        cancelled: asyncio.CancelledError | None = None
        while self._thread.is_alive():
            try:
                await self._queue.ended()
                self._thread.join()  # nothing is left for it to do
            except asyncio.CancelledError as error:  # the thread is not left behind
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def __aenter__(self) -> RoundEvents:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._queue is not None and not self._is_over:
            self._queue.leave()
