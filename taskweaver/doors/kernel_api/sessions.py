"""Sessions of the kernel API: a kernel, its working directory, and its executions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from taskweaver.ces.common import Client, ExecutionResult, PluginCode
from taskweaver.doors.kernel_api.executions import Ending, Execution, Executions
from taskweaver.doors.kernel_api.models import SessionFacts
from taskweaver.server.admission import Admission
from taskweaver.server.errors import RequestRefused, stopping
from taskweaver.utils.file_system.safe_fs import Folder

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
