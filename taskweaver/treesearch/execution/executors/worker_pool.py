"""WorkerPool: an executor whose jobs can die, hang and be cancelled without harm to the others."""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from taskweaver.ces.bounds.cgroup import sweep_groups
from taskweaver.ces.environment import WORKER_MARK
from taskweaver.ces.process.homes import sweep_folders
from taskweaver.ces.process.marked import kill_all_marked
from taskweaver.treesearch.errors import NotTransferable, SearchError, WorkerLost
from taskweaver.treesearch.execution.executors.worker_process import TURN, WorkerReply
from taskweaver.treesearch.execution.machine import VISIBLE_GPUS
from taskweaver.utils.ids import create_id
from taskweaver.utils.system.signals import signal_name

# As a module it would be `__main__`, and its classes others than they are here.
_MAIN = "from taskweaver.treesearch.execution.executors.worker_process import main; main()"
_PACKAGE_ROOT = Path(__file__).parents[4]
_GUARD = Path(__file__).parent / "worker_guard.py"
_STOP_S = 5.0
_LONGEST_POLL_S = 3600.0
_LAST_WORDS_BYTES = 2000
T = TypeVar("T")


class WorkerFuture(Future[Any]):
    """A future that can be cancelled while its job runs.

    It stays pending for `Future` until the job has ended, so that cancelling works.

    Attributes:
        has_begun: Whether a worker has begun the job.
    """

    has_begun = False

    def running(self) -> bool:
        """Whether a worker is at it."""
        return self.has_begun and not self.done()

    def settle(self, reply: WorkerReply) -> None:
        """End as the job did, unless the future was cancelled; the job has ended."""
        if not self.set_running_or_notify_cancel():
            return
        if reply.error is None:
            self.set_result(reply.value)
            return
        if reply.trace:
            reply.error.add_note(f"In a worker:\n{reply.trace}")
        self.set_exception(reply.error)


class _Task(WorkerFuture):
    """A job of the pool."""

    def __init__(self, call: bytes, deadline_s: float, *, is_alone: bool) -> None:
        super().__init__()
        self.call = call
        self.deadline_s = deadline_s
        self.is_alone = is_alone


def packed_call(function: Callable[..., Any], *args: Any) -> bytes:
    """Return a call in the form that travels to a worker.

    Raises:
        NotTransferable: If it cannot travel.
    """
    try:
        return pickle.dumps((function, args))
    except Exception as error:
        raise NotTransferable(f"The job cannot travel to a worker: {error!r:.300}.") from error


class WorkerPool(Executor):
    """Runs functions in processes of their own. Shut it down.

    A function must be importable, by name; it, its arguments and its result are pickled. A future
    that is cancelled while it runs ends at once as cancelled; its process, and every process that
    carries its mark, is killed. A worker that dies fails its own future with `WorkerLost`, and is
    replaced. The exception of a function is raised by its future, with a note of its place; objects
    that cannot travel between processes raise `NotTransferable`.
    """

    def __init__(
        self, count: int, gpus: Sequence[str] = (), *, idle_s: float | None = None
    ) -> None:
        """Make a slot for each of `count` jobs at a time; processes start when they are needed.

        Slots get the GPUs round robin, as `VISIBLE_GPUS`. A process without a job for `idle_s`
        ends; None keeps it.

        Raises:
            ValueError: If `count` is below 1.
        """
        if count < 1:
            raise ValueError(f"count must be at least 1, not {count}")
        self._tasks = _TaskQueue()
        self._lock = threading.Lock()
        self._open: set[_Task] = set()
        self._is_shut = False
        self._idle_s = idle_s
        self._id = create_id("pool")
        self._guard = _guard(self._id)
        self._threads = [
            threading.Thread(
                target=self._serve,
                args=(gpus[n % len(gpus)] if gpus else None,),
                name=f"search-worker-{n}",
                daemon=True,
            )
            for n in range(count)
        ]
        for thread in self._threads:
            thread.start()
        atexit.register(self.shutdown, cancel_futures=True)

    def submit(  # type: ignore[override]  # keywords are those of the pool
        self, fn: Callable[..., T], /, *args: Any, deadline_s: float = 0.0, is_alone: bool = False
    ) -> Future[T]:
        """Run a function in a worker that is lost after a deadline from its start on; 0 is no end.

        One that `is_alone` has the turn at this host, see `host_turn`; its deadline counts from
        that.

        Raises:
            RuntimeError: If the workers are shut down.
        """
        try:
            call = packed_call(fn, *args)
        except NotTransferable as problem:
            failed = WorkerFuture()
            failed.set_exception(problem)
            return failed
        return self.submit_packed(deadline_s, call, is_alone=is_alone)

    def submit_packed(
        self, deadline_s: float, call: bytes, *, is_alone: bool = False
    ) -> Future[Any]:
        """Run a call that was packed, perhaps by another process; see `submit`.

        Raises:
            RuntimeError: If the workers are shut down.
        """
        task = _Task(call, deadline_s, is_alone=is_alone)
        with self._lock:
            if self._is_shut:
                raise RuntimeError("The workers are shut down.")
            self._open.add(task)
            self._tasks.put(task)
        task.add_done_callback(self._open.discard)  # one step, which needs no lock
        return task

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Accept no more calls; end the processes after the open ones. Safe to call again.

        With `cancel_futures` the open calls are cancelled, running ones too.
        """
        with self._lock:
            is_first, self._is_shut = not self._is_shut, True
            tasks = list(self._open)
        if cancel_futures:
            for task in tasks:
                task.cancel()
        if is_first:
            atexit.unregister(self.shutdown)
            self._tasks.put(*[None] * len(self._threads))
        if wait:
            for thread in self._threads:
                thread.join()
            if self._guard.poll() is None:
                self._guard.communicate(b".")  # an orderly end: it has nothing to do

    def _serve(self, gpu: str | None) -> None:
        """Do one task after the other, in a process that is replaced when it is lost."""
        process: _Process | None = None
        while (task := self._next_task(process)) is not None:
            if task.cancelled():
                task.set_running_or_notify_cancel()
                self._tasks.expect(process)
                continue
            task.has_begun = True
            try:
                if process is None or process.has_ended:
                    if process is not None:
                        process.end(0.0)
                    process = _Process(f"{self._id}.{create_id('worker')}", gpu)
                reply = process.ask(task)
            except (SearchError, OSError) as error:
                reply = WorkerReply(error=error)
            if process is not None and (task.cancelled() or isinstance(reply.error, WorkerLost)):
                process.end(0.0)
                process = None
            self._tasks.expect(process)  # before the reply, which another task may follow
            task.settle(reply)
        if process is not None:
            process.end(_STOP_S)

    def _next_task(self, process: _Process | None) -> _Task | None:
        """Wait for a task; None is the end. A process that has none for too long ends meanwhile."""
        if process is not None:
            try:
                return self._tasks.take_for_process(self._idle_s)
            except queue.Empty:
                process.end(0.0)
        return self._tasks.take()


def _guard(pool_id: str) -> subprocess.Popen[bytes]:
    """Start the process that ends what the pool's workers leave when this process is killed."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(_GUARD), f"{pool_id}.", str(_PACKAGE_ROOT), *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )


class _Process:
    """A worker process. End it.

    It is tied to the thread that started it, and ends with it.
    """

    def __init__(self, mark: str, gpu: str | None) -> None:
        self._mark = mark
        self._is_over = False
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
        ours, theirs = socket.socketpair()
        environment = dict(os.environ) | {WORKER_MARK: self._mark}
        paths = [str(_PACKAGE_ROOT), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        if gpu is not None:
            environment[VISIBLE_GPUS] = gpu
        with theirs, ours:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _MAIN, str(theirs.fileno())],
                    env=environment,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=self._said,
                    stderr=self._said,
                    start_new_session=True,
                )
            except BaseException:
                self._said.close()
                raise
            self._death_fd = os.pidfd_open(self._process.pid)
            self._connection = Connection(ours.detach())
        with suppress(BrokenPipeError):  # it ended at once; the first question tells
            self._connection.send_bytes(pickle.dumps(sys.path))

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._is_over or self._ends_within(0.0)

    def _ends_within(self, seconds: float) -> bool:
        """Wait for its end, and leave its number taken: no other process can have it meanwhile."""
        poll = select.poll()
        poll.register(self._death_fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def ask(self, task: _Task) -> WorkerReply:
        """Run a task; cancelling it ends the wait.

        Raises:
            WorkerLost: If the process dies, or takes too long.
            NotTransferable: If its reply cannot be read here.
        """
        bell, rope = socket.socketpair()
        with bell, rope:

            def ring(_: object) -> None:
                with suppress(OSError):  # it was done: nobody waits any more
                    rope.send(b"\0")

            task.add_done_callback(ring)
            try:
                if task.is_alone:
                    self._connection.send_bytes(TURN)
                    if not self._has_answer(bell.fileno(), 0.0):
                        return WorkerReply()
                    self._connection.recv_bytes()
                self._connection.send_bytes(task.call)
                if not self._has_answer(bell.fileno(), task.deadline_s):
                    return WorkerReply()
                data = self._connection.recv_bytes()
            except (EOFError, OSError) as error:
                raise WorkerLost(f"The worker {self._ending()}.") from error
        try:
            reply: WorkerReply = pickle.loads(data)  # noqa: S301 - from this package's own process
        except Exception as error:
            raise NotTransferable(f"The job's result cannot be read: {error!r:.300}.") from error
        return reply

    def _has_answer(self, bell_fd: int, deadline_s: float) -> bool:
        """Wait for an answer, without end for 0; return False when the task is cancelled."""
        deadline = time.monotonic() + deadline_s if deadline_s else float("inf")
        poll = select.poll()
        for fd in (bell_fd, self._connection.fileno(), self._death_fd):
            poll.register(fd, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise WorkerLost(f"The worker did not come back within {deadline_s:g} s.")
            ready = {fd for fd, _ in poll.poll(min(left, _LONGEST_POLL_S) * 1000)}
            if bell_fd in ready:
                return False
            if self._connection.fileno() in ready:
                return True
            if ready:  # it is dead, and something it started holds the connection
                raise WorkerLost(f"The worker {self._ending()}.")

    def _ending(self) -> str:
        """Return the end of the process in words, with its last output."""
        if not self._ends_within(_STOP_S):
            return "closed its connection"
        code = self._kill()
        how = f"ended with exit status {code}"
        if code < 0:
            how = f"was killed by {signal_name(-code)}"
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _LAST_WORDS_BYTES))
        words = self._said.read().decode("utf-8", "backslashreplace").strip()
        return f"{how}; it said last:\n{words}\n" if words else how

    def _kill(self) -> int:
        """Kill it and its group, if that was not done; return its exit code, as Popen does."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):  # it is gone, and nothing is left in its group
                os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()

    def end(self, grace_s: float) -> None:
        """Wait some time for its end, then kill it and all it started; safe to call again."""
        if self._is_over:
            return
        self._is_over = True
        self._connection.close()
        self._ends_within(grace_s)
        self._kill()
        kill_all_marked(self._mark, WORKER_MARK)
        os.close(self._death_fd)
        self._said.close()
        sweep_folders()
        sweep_groups()


class _TaskQueue:
    """Tasks in their order, None for an end: a slot without a process leaves them to idle ones."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._tasks: deque[_Task | None] = deque()
        self._idle = 0

    def put(self, *tasks: _Task | None) -> None:
        """Add tasks at the end."""
        with self._changed:
            self._tasks.extend(tasks)
            self._changed.notify_all()

    def expect(self, process: object | None) -> None:
        """Count a slot's process, if there is one, as idle: it is about to ask for a task."""
        if process is not None:
            with self._changed:
                self._idle += 1

    def take_for_process(self, idle_s: float | None) -> _Task | None:
        """Return the next task for an idle process, which is idle no longer.

        Raises:
            queue.Empty: If none came within `idle_s`; None waits without end.
        """
        with self._changed:
            is_there = self._changed.wait_for(lambda: len(self._tasks) > 0, idle_s)
            self._idle -= 1
            if not is_there:
                self._changed.notify_all()
                raise queue.Empty
            return self._tasks.popleft()

    def take(self) -> _Task | None:
        """Return the next task that no idle process takes."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._tasks) > self._idle)
            return self._tasks.popleft()
