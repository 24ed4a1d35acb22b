"""Executions of a session: numbered events that any number of readers follow, and their results."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from taskweaver.ces.common import ExecutionResult, Stream
from taskweaver.server.errors import RequestRefused, conflict

_KEPT = 100
_KEPT_CHARS = 8 << 20
_PROMPT_EVENTS, _GATHERED_S = 1000, 0.5
"""Number of events up to which output is passed on at once, and the pause between later ones."""


@dataclass(frozen=True, slots=True)
class ExecutionEvent:
    """An event of an execution, with its data as JSON."""

    number: int
    kind: str
    data: str

    def encoded(self) -> bytes:
        """Return it as a server-sent event."""
        return f"id: {self.number}\nevent: {self.kind}\ndata: {self.data}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Ending:
    """The last events of an execution, as JSON; `details` is empty if there are none."""

    answer: str
    details: str = ""


class Execution:
    """Code that runs or ran.

    Used in the event loop's thread, except for `on_output`.

    Attributes:
        id: Id that the client gave.
        code: The code.
        events: Its events so far.
        result: Its result; None until it ended by itself.
        error: The error that it ended with; None for none.
        is_interrupted: Whether it is to end, also before its code runs.
    """

    def __init__(self, execution_id: str, code: str) -> None:
        self.id = execution_id
        self.code = code
        self.events: list[ExecutionEvent] = []
        self.result: ExecutionResult | None = None
        self.error: Exception | None = None
        self._loop = asyncio.get_running_loop()
        self._pending: deque[tuple[Stream, str]] = deque()
        self._is_scheduled = False
        self._news = asyncio.Event()
        self._is_done = asyncio.Event()
        self.is_interrupted = False

    @property
    def size_chars(self) -> int:
        """Size of its events."""
        return sum(len(event.data) for event in self.events)

    @property
    def is_done(self) -> bool:
        """Whether it ended."""
        return self._is_done.is_set()

    def on_output(self, stream: Stream, text: str) -> None:
        """Take a piece of output, in the thread that runs the code."""
        self._pending.append((stream, text))
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon_threadsafe(self._schedule)

    def _schedule(self) -> None:
        if len(self.events) < _PROMPT_EVENTS:
            self._flush()
        else:
            self._loop.call_later(_GATHERED_S, self._flush)

    def _flush(self) -> None:
        """Add the pending output as events, one for each change of the stream."""
        self._is_scheduled = False
        joined: list[tuple[Stream, list[str]]] = []
        for _ in range(len(self._pending)):
            stream, text = self._pending.popleft()
            if not joined or joined[-1][0] != stream:
                joined.append((stream, []))
            joined[-1][1].append(text)
        for stream, texts in joined:
            self._add("output", json.dumps({"type": stream, "text": "".join(texts)}))

    def _add(self, kind: str, data: str) -> None:
        if self.is_done:
            return
        self.events.append(ExecutionEvent(len(self.events) + 1, kind, data))
        news, self._news = self._news, asyncio.Event()
        news.set()

    def end(self, ending: Ending, result: ExecutionResult | None, error: Exception | None) -> None:
        """End it with the last events for its readers."""
        self._flush()
        self.result, self.error = result, error
        if ending.details:
            self._add("details", ending.details)
        self._add("result", ending.answer)
        self._add("done", "{}")
        self._is_done.set()

    async def outcome(self) -> ExecutionResult:
        """Wait for the end; return the result.

        Raises:
            Exception: The error it ended with.
        """
        await self._is_done.wait()
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result

    def position(self, last_event_id: str) -> int:
        """Return the number of events that a reader has seen, from its header.

        Raises:
            RequestRefused: If the header is no number, or of an event that is yet to come.
        """
        if not last_event_id:
            return 0
        if not last_event_id.isascii() or not last_event_id.isdigit():
            raise RequestRefused(400, "event-id", "Last-Event-ID must be a number.")
        number = int(last_event_id[:20])
        if number > len(self.events):
            raise conflict(f"There are only {len(self.events)} events; {number} is yet to come.")
        return number

    async def follow(self, position: int) -> AsyncGenerator[bytes, None]:
        """Yield the events after some, as they come."""
        while True:
            news = self._news
            for event in self.events[position:]:
                position = event.number
                yield event.encoded()
            if self.is_done and position == len(self.events):
                return
            await news.wait()


class Executions:
    """The executions of a session: those that run, and the last that ended."""

    def __init__(self) -> None:
        self._all: OrderedDict[str, Execution] = OrderedDict()
        self.count = 0

    def get(self, execution_id: str) -> Execution | None:
        """Return an execution; None if there is none of this id any more."""
        return self._all.get(execution_id)

    def begin(self, execution_id: str, code: str) -> tuple[Execution, bool]:
        """Return an execution, and whether it is new.

        Raises:
            RequestRefused: If the id is that of other code.
        """
        found = self._all.get(execution_id)
        if found is not None:
            if found.code != code:
                raise conflict(f"Execution {execution_id} has other code already.")
            return found, False
        self._forget()
        execution = self._all[execution_id] = Execution(execution_id, code)
        self.count += 1
        return execution, True

    def first(self) -> Execution | None:
        """Return the execution that runs, or is the next to run."""
        return next((item for item in self._all.values() if not item.is_done), None)

    def _forget(self) -> None:
        """Forget the oldest that ended, beyond a number and a size."""
        ended = [item for item in self._all.values() if item.is_done]
        size = sum(item.size_chars for item in ended)
        for number, item in enumerate(ended):
            if len(ended) - number < _KEPT and size <= _KEPT_CHARS:
                return
            size -= item.size_chars
            del self._all[item.id]
