"""Sessions of the kernel API: kernels, working directories, executions that readers follow."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from taskweaver.ces.common import Client, ExecutionResult, PluginCode, Stream
from taskweaver.doors.kernel_api.models import SessionFacts
from taskweaver.server.admission import Admission
from taskweaver.server.errors import RequestRefused, conflict, stopping
from taskweaver.utils.file_system.safe_fs import Folder

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


T = TypeVar("T")
_MOST_WAITING = 32


@dataclass(frozen=True, slots=True)
class Place:
    """Folders of a session.

    Attributes:
        root: Folder that a session shares with the sessions forked off it.
        cwd: Working directory, below `root`.
    """

    root: Path
    cwd: Path


@dataclass(frozen=True, slots=True)
class Workers:
    """Means by which sessions run code.

    Attributes:
        admission: Decides when code may run.
        threads: Threads in which it runs, as many as there are places.
    """

    admission: Admission
    threads: ThreadPoolExecutor


@dataclass(slots=True)
class _Loaded:
    """Parts of a kernel that a restart brings back."""

    plugins: dict[str, PluginCode] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


class KernelSession:
    """A kernel of a user. Stop it.

    Operations that need the kernel wait for their turn without occupying a thread; interrupts,
    files and facts never wait.

    Attributes:
        id: Id that the client gave.
        user: Name of the user.
        place: Its folders.
        files: Its working directory, open since before code ran in it.
        executions: Its executions.
        kernel: The kernel.
        loaded: Plugins and session variables, which a restart brings back.
    """

    def __init__(
        self, session_id: str, user: str, place: Place, kernel: Client, workers: Workers
    ) -> None:
        self.id = session_id
        self.user = user
        self.place = place
        self.files = Folder.at(place.cwd)
        self.executions = Executions()
        self.kernel = kernel
        self.loaded = _Loaded()
        self._created_at = self._last_activity = datetime.now(UTC)
        self._workers = workers
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    @property
    def facts(self) -> SessionFacts:
        """Facts about it, as clients see them."""
        return SessionFacts(
            session_id=self.id,
            created_at=self._created_at,
            last_activity=self._last_activity,
            loaded_plugins=sorted(self.loaded.plugins),
            execution_count=self.executions.count,
            cwd=str(self.place.cwd),
        )

    def touch(self) -> None:
        """Note that it is in use."""
        self._last_activity = datetime.now(UTC)

    async def run(self, work: Callable[[Client], T]) -> T:
        """Do work with the kernel, in a thread, when its turn has come.

        Raises:
            RequestRefused: If too many operations wait, or the session was stopped.
        """
        async with self._own_turn():
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._workers.threads, work, self.kernel)

    @asynccontextmanager
    async def _own_turn(self) -> AsyncIterator[None]:
        if self._waiting >= _MOST_WAITING:
            detail = f"{self._waiting} operations of session {self.id} wait already."
            raise RequestRefused(429, "queue-full", detail, retry_after_s=1)
        self._waiting += 1
        try:
            async with self._turn, self._workers.admission.place(self.user):
                if self._is_stopped:
                    raise stopping() if self._workers.admission.is_stopping else gone(self.id)
                yield
        finally:
            self._waiting -= 1
            self.touch()

    def execute(self, execution_id: str, code: str, describe: Describe) -> Execution:
        """Begin an execution, or find the one of the same id and code.

        Args:
            execution_id: Id that the client gave.
            code: The code.
            describe: Returns the last events for a result, or for the reason that there is none.

        Raises:
            RequestRefused: If the id is that of other code, or too many operations wait.
        """
        self.touch()
        if self._waiting >= _MOST_WAITING and self.executions.get(execution_id) is None:
            detail = f"{self._waiting} operations of session {self.id} wait already."
            raise RequestRefused(429, "queue-full", detail, retry_after_s=1)
        execution, is_new = self.executions.begin(execution_id, code)
        if is_new:
            task = asyncio.ensure_future(self._execute(execution, describe))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return execution

    async def _execute(self, execution: Execution, describe: Describe) -> None:
        def work(kernel: Client) -> ExecutionResult:
            with kernel.operation():
                if execution.is_interrupted:
                    return _not_begun(execution)
                return kernel.execute_code(execution.id, execution.code, execution.on_output)

        try:
            result = await self.run(work)
        except Exception as error:  # noqa: BLE001 - its readers get it, whatever it is
            execution.end(describe(str(error)), None, error)
        else:
            execution.end(describe(result), result, None)

    async def interrupt(self) -> None:
        """Interrupt the execution that runs, or is the next to run."""
        first = self.executions.first()
        if first is not None:
            first.is_interrupted = True
        await asyncio.to_thread(self.kernel.interrupt)

    async def replace_kernel(self, make: Callable[[], Client]) -> None:
        """Stop the kernel, with all that runs or waits, and go on with a fresh one."""
        stopped = asyncio.ensure_future(asyncio.to_thread(self.kernel.stop))
        async with self._turn:
            await stopped
            self.kernel = await asyncio.to_thread(make)

    async def settle(self) -> None:
        """Wait until no execution runs."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        """End the kernel, and with it the running execution; safe to call again."""
        self._is_stopped = True
        await asyncio.to_thread(self.kernel.stop)
        await self.settle()
        async with self._turn:  # an operation of another kind may hold the kernel
            pass
        self.files.close()


Describe = Callable[[ExecutionResult | str], Ending]


def _not_begun(execution: Execution) -> ExecutionResult:
    reason = "The cell was interrupted before it began."
    return ExecutionResult(execution.id, execution.code, error=reason, status="interrupted")


def gone(session_id: str) -> RequestRefused:
    """Return the refusal of an operation whose session was stopped meanwhile."""
    return RequestRefused(410, "stopped", f"Session {session_id} was stopped.")
