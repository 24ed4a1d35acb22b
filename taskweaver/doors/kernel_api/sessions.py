"""Sessions of the kernel API: kernels, working directories, executions that readers follow."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

from taskweaver.ces.common import Client, ExecutionResult, PluginCode, Stream
from taskweaver.doors.kernel_api.models import SessionFacts
from taskweaver.server.admission import Admission, HeldShare
from taskweaver.server.agents.following import event_number
from taskweaver.server.errors import RequestRefused, conflict, stopping
from taskweaver.utils.file_system.safe_fs import Folder

_KEPT = 100
_KEPT_BYTES = 8 << 20
_PROMPT_EVENTS, _GATHERED_S = 1000, 0.5
"""Number of events up to which output is passed on at once, and the pause between later ones."""
_MOST_WAITING = 32
T = TypeVar("T")

LastEvents = list[tuple[str, str]]
"""Kinds and data, as JSON, of the last events of an execution."""
Describe = Callable[[ExecutionResult | str], LastEvents]


class Execution:
    """Code that runs or ran.

    Used in the event loop's thread, except for `on_output`.

    Attributes:
        id: Id that the client gave.
        code: The code.
        events: Its events so far, as server-sent events whose ids are their numbers.
        is_interrupted: Whether it is to end, also before its code runs.
    """

    def __init__(self, execution_id: str, code: str) -> None:
        self.id = execution_id
        self.code = code
        self.events: list[bytes] = []
        self._outcome: ExecutionResult | Exception | None = None
        self._loop = asyncio.get_running_loop()
        self._pending: deque[tuple[Stream, str]] = deque()
        self._is_scheduled = False
        self._news = asyncio.Event()
        self._is_done = asyncio.Event()
        self.is_interrupted = False

    @property
    def is_done(self) -> bool:
        """Whether the execution ended."""
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
        taken = [self._pending.popleft() for _ in range(len(self._pending))]
        for stream, pieces in groupby(taken, itemgetter(0)):
            text = "".join(text for _, text in pieces)
            self._add("output", json.dumps({"type": stream, "text": text}))

    def _add(self, kind: str, data: str) -> None:
        if self.is_done:
            return
        number = len(self.events) + 1
        self.events.append(f"id: {number}\nevent: {kind}\ndata: {data}\n\n".encode())
        news, self._news = self._news, asyncio.Event()
        news.set()

    def end(self, last: LastEvents, outcome: ExecutionResult | Exception) -> None:
        """End the execution with the last events for readers."""
        self._flush()
        self._outcome = outcome
        for kind, data in (*last, ("done", "{}")):
            self._add(kind, data)
        self._is_done.set()

    async def outcome(self) -> ExecutionResult:
        """Wait for the end, and return the result.

        Raises:
            Exception: The error it ended with.
        """
        await self._is_done.wait()
        if isinstance(self._outcome, ExecutionResult):
            return self._outcome
        assert self._outcome is not None
        raise self._outcome

    def position(self, last_event_id: str) -> int:
        """Return the number of events that a reader has seen, from the header.

        Raises:
            RequestRefused: If the header is no number, or of an event that is yet to come.
        """
        number = event_number(last_event_id)
        if number > len(self.events):
            raise conflict(f"There are only {len(self.events)} events; {number} is yet to come.")
        return number

    async def follow(self, position: int) -> AsyncGenerator[bytes, None]:
        """Yield the events after a position, as soon as each happens."""
        while True:
            news = self._news
            for event in self.events[position:]:
                position += 1
                yield event
            if self.is_done and position == len(self.events):
                return
            await news.wait()


class Place(NamedTuple):
    """Folders of a session.

    Attributes:
        root: Folder that a session shares with the sessions forked off it.
        cwd: Working directory, below `root`.
    """

    root: Path
    cwd: Path


class KernelSession:
    """A kernel of a user. Needs `stop`.

    Operations that need the kernel wait for their turn without occupying a thread; interrupts,
    files and facts never wait.

    Attributes:
        id: Id that the client gave.
        user: Name of the user.
        place: Its folders.
        files: Its working directory, open since before code ran in it.
        executions: Executions by id: those that run, and the last that ended.
        kernel: The kernel.
        plugins: Plugins in it by name, which a restart brings back.
        variables: Session variables, which a restart brings back.
    """

    def __init__(
        self,
        session_id: str,
        user: str,
        place: Place,
        kernel: Client,
        admission: Admission,
        share: HeldShare,
    ) -> None:
        """Offer a kernel, and take over a share of the user's until the end."""
        self.id = session_id
        self.user = user
        self.place = place
        self.files = Folder.at(place.cwd)
        self.executions: dict[str, Execution] = {}
        self._begun = 0
        self.kernel = kernel
        self.plugins: dict[str, PluginCode] = {}
        self.variables: dict[str, str] = {}
        self._created_at = self._last_activity = datetime.now(UTC)
        self._admission = admission
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False
        self._share = share.pop_all()

    @property
    def facts(self) -> SessionFacts:
        """Facts for clients."""
        return SessionFacts(
            session_id=self.id,
            created_at=self._created_at,
            last_activity=self._last_activity,
            loaded_plugins=sorted(self.plugins),
            execution_count=self._begun,
            cwd=str(self.place.cwd),
        )

    def touch(self) -> None:
        """Note the use."""
        self._last_activity = datetime.now(UTC)

    async def run(self, work: Callable[[Client], T]) -> T:
        """Do work with the kernel, in a thread, after the work that came before.

        Raises:
            RequestRefused: If too many operations wait, or the session was stopped.
        """
        async with self._own_turn():
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._admission.threads, work, self.kernel)

    def _check_queue(self) -> None:
        if self._waiting >= _MOST_WAITING:
            detail = f"{self._waiting} operations of session {self.id} wait already."
            raise RequestRefused(429, "queue-full", detail, retry_after_s=1)

    @asynccontextmanager
    async def _own_turn(self) -> AsyncIterator[None]:
        self._check_queue()
        self._waiting += 1
        try:
            async with self._turn, self._admission.place(self.user):
                if self._is_stopped:
                    if self._admission.is_stopping:
                        raise stopping()
                    raise RequestRefused(410, "stopped", f"Session {self.id} was stopped.")
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
        found = self.executions.get(execution_id)
        if found is not None:
            if found.code != code:
                raise conflict(f"Execution {execution_id} has other code already.")
            return found
        self._check_queue()
        self._forget()
        made = self.executions[execution_id] = Execution(execution_id, code)
        self._begun += 1
        task = asyncio.ensure_future(self._execute(made, describe))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return made

    def _forget(self) -> None:
        """Forget the oldest executions that ended, beyond a number and a size."""
        ended = [item for item in self.executions.values() if item.is_done]
        sizes = [sum(map(len, item.events)) for item in ended]
        for number, item in enumerate(ended):
            if len(ended) - number < _KEPT and sum(sizes[number:]) <= _KEPT_BYTES:
                return
            del self.executions[item.id]

    async def _execute(self, execution: Execution, describe: Describe) -> None:
        def work(kernel: Client) -> ExecutionResult:
            with kernel.operation():
                id_, code = execution.id, execution.code
                if execution.is_interrupted:
                    reason = "The cell was interrupted before it began."
                    return ExecutionResult(id_, code, error=reason, status="interrupted")
                return kernel.execute_code(id_, code, execution.on_output)

        try:
            result = await self.run(work)
        except Exception as error:  # noqa: BLE001 - its readers get it, whatever it is
            execution.end(describe(str(error)), error)
        else:
            execution.end(describe(result), result)

    async def interrupt(self) -> None:
        """Interrupt the execution that runs, or is the next to run."""
        first = next((item for item in self.executions.values() if not item.is_done), None)
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
        """End the kernel with the running execution. Safe to call again."""
        self._is_stopped = True
        self._share.close()
        await asyncio.to_thread(self.kernel.stop)
        await self.settle()
        async with self._turn:  # an operation of another kind may hold the kernel
            pass
        self.files.close()
