"""A session's kernel: runs cells one after another, and comes back after whatever one does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from functools import partial
from typing import Any

from taskweaver.ces.bounds.bound import ResourceBound
from taskweaver.ces.bounds.guard import CellWatch
from taskweaver.ces.claims import mapping, rows, text
from taskweaver.ces.common import (
    ExecutionResult,
    OriginalUses,
    OutputHandler,
    PluginCode,
)
from taskweaver.ces.errors import (
    ForkRefused,
    KernelClosed,
    KernelError,
    KernelInterrupted,
    KernelStartFailed,
)
from taskweaver.ces.hostcalls import HostCalls, HostFunctions
from taskweaver.ces.kernel.channel import Exchange, KernelChannel
from taskweaver.ces.kernel.operations import Interrupts, Operations
from taskweaver.ces.kernel.outcome import answer, end_of, result_of
from taskweaver.ces.kernel.running import (
    KernelPaths,
    KernelSnapshot,
    NewKernel,
    RequestWait,
    RunningKernel,
    connection_file,
)
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process.footprint import Footprint, footprint
from taskweaver.ces.process.homes import Homes
from taskweaver.ces.process.process import KernelProcess
from taskweaver.ces.state_transfer import RESTORE_S, Origin, StateWriter
from taskweaver.ces.template import Handshake, Template

Operation = dict[str, Any]
"""Operation of the kernel's own side, see `inkernel.kernel`."""
_PluginRequest = Callable[[Operation, float], Mapping[str, Any] | None]
"""Send an operation to the running kernel; None when the kernel ended over it."""

_LOAD_S, _LOAD_GRACE_S = 30.0, 5.0
_ENDED = "it ended the Python session, which was restarted"
_SHUT_DOWN_S, _OVERVIEW_S, _MOST_TESTS = 2.0, 60.0, 100
_MORE_OUTPUT_CHARS = 100_000  # so that the kernel's own limit, in bytes, is the one that counts
_STOPPED = ("The kernel was stopped.", "Start another session.")


class KernelPlugins:
    """Plugins of a kernel.

    Attributes:
        loaded: Code of each plugin that is loaded, by name.
    """

    def __init__(self, request: _PluginRequest, cell_timeout_s: float) -> None:
        self.loaded: dict[str, PluginCode] = {}
        self._request = request
        self._limit_s = min(_LOAD_S, cell_timeout_s)
        self._lost: dict[str, str] = {}

    def update(self, plugins: Iterable[PluginCode], removed: Iterable[str]) -> dict[str, str]:
        """Load new and changed plugins, remove others, and map names to problems."""
        gone = list(removed)
        new = [plugin for plugin in plugins if self.loaded.get(plugin.name) != plugin]
        for name in [*gone, *(plugin.name for plugin in new)]:
            self.loaded.pop(name, None)
        return self._load(new, gone) if new or gone else {}

    def load_again(self) -> None:
        """Load all plugins into a fresh kernel. `take_lost` returns the plugins that fail now."""
        before, self.loaded = self.loaded, {}
        try:
            self._lost |= self._load(list(before.values()), []) if before else {}
        except BaseException:
            self.loaded = before  # for the kernel that comes next
            raise

    def take_lost(self) -> list[tuple[str, str, str]]:
        """Return, once, a log line for each plugin that a restart lost."""
        lost, self._lost = self._lost, {}
        return [("error", name, f"{problem} (left out)") for name, problem in lost.items()]

    def _load(self, new: Sequence[PluginCode], gone: Sequence[str]) -> dict[str, str]:
        """Load plugins in one request, or each alone after a plugin ended the kernel."""
        problems = self._ask(new, gone)
        if problems is not None:
            return problems
        problems = {}
        for plugin in new:
            alone = self._ask([plugin], [])
            problems |= {plugin.name: _ENDED} if alone is None else alone
        return problems

    def _ask(self, new: Sequence[PluginCode], gone: Sequence[str]) -> dict[str, str] | None:
        operation = {
            "op": "load",
            "plugins": [asdict(plugin) for plugin in new],
            "removed": list(gone),
            "limit_s": self._limit_s,
        }
        reply = self._request(operation, self._limit_s * len(new) + _LOAD_GRACE_S)
        reported = None if reply is None else reply.get("problems")
        if not isinstance(reported, dict):
            return None
        problems = {item.name: text(reported[item.name]) for item in new if item.name in reported}
        self.loaded |= {plugin.name: plugin for plugin in new if plugin.name not in problems}
        return problems


class Kernel(OriginalUses):
    """A session's kernel: started when needed and restarted after a death.

    Attributes:
        state: ``not started``, ``starting``, ``ready``, ``busy`` or ``stopped``.
        place: Its folders and files.
    """

    def __init__(
        self,
        place: KernelPaths,
        limits: KernelLimits,
        launch: Callable[[KernelPaths, Callable[[], bool]], Future[KernelProcess]],
        on_stop: Callable[[Kernel], None],
        fork: NewKernel,
        origin: KernelSnapshot | None = None,
    ) -> None:
        """Prepare a kernel. Nothing runs yet, unless forked off the snapshot `origin`.

        `launch` starts a process in the background, unless its function returns False by then;
        `on_stop` is called once; `fork` makes a kernel of a snapshot.

        Raises:
            ForkRefused: If it cannot be forked off the snapshot.
        """
        self.state = "not started"
        self.place, self.cwd = place, place.cwd
        self._limits = limits
        self._launch_process = launch
        self._origin: Origin = lambda: None
        self._interrupts = Interrupts()
        # Held while a process is launched and while `_is_closed` is set: none starts after that.
        self._starting_lock = threading.Lock()
        self._starting: Future[KernelProcess] | None = None
        self._is_closed = False
        # Held by each operation, and by `stop` once it has interrupted that: for all below. Other
        # threads, which show or interrupt it, take one look at `_running`.
        self._operations = Operations(self._interrupts, place.output)
        self._running: RunningKernel | None = None
        self._plugins = KernelPlugins(self._request, limits.cell_timeout_s)
        self._session_vars: dict[str, str] = {}
        self._calls: HostCalls | None = None
        self._on_stop: Callable[[Kernel], None] | None = on_stop
        self._new_fork = fork
        if origin is not None:
            place.guard.require_kernel()
            process = origin.template.spawn(place.cwd, place.log_path)
            self._plugins.loaded = dict(origin.plugins)
            self._session_vars |= origin.session_vars
            self._connect(process, is_copy=True)
            self.state = "ready"

    @property
    def has_state(self) -> bool:
        """True if the kernel runs and has all variables."""
        return self._running is not None and self._running.has_state

    @property
    def process(self) -> KernelProcess | None:
        """The process, or None when the kernel does not run."""
        return None if self._running is None else self._running.process

    def start(self) -> None:
        """Start the process in the background, unless the first cell is to restore a state."""
        if self._running is None and self._origin() is None:
            with suppress(KernelClosed):
                self._launch()

    def _launch(self) -> Future[KernelProcess]:
        with self._starting_lock:
            if self._is_closed:
                raise KernelClosed(*_STOPPED)
            if self._starting is None:
                self.place.guard.require_kernel()
                self.state = "starting"
                self._starting = self._launch_process(self.place, lambda: not self._is_closed)
            return self._starting

    def execute_code(
        self, exec_id: str, code: str, on_output: OutputHandler | None = None
    ) -> ExecutionResult:
        """Run a cell to its end, its deadline, or the kernel's death (see `Client`)."""
        with self.operation():
            try:
                running = self._ready()
                problems = self._restore(running)
            except KernelInterrupted as error:
                if self._is_closed:
                    raise KernelClosed(*_STOPPED) from None
                return ExecutionResult(exec_id, code, error=str(error), status="interrupted")
            began = time.monotonic()
            tables = self.place.tables.limit_chars
            payload = json.dumps({"op": "cell", "exec_id": exec_id, "table_chars": tables})
            with self.place.guard.cell() as watch:
                with self._calls.answered() if self._calls else nullcontext():
                    exchange = self._run(running, code, payload, on_output, watch=watch)
                process, has_died = self.process, exchange.ending == "died"
                is_over = has_died or process is None or not process.is_alive
                ended = end_of(process, self._origin) if is_over else None
                watch.finish()
                result = result_of(
                    exec_id, code, exchange, place=self.place, watch=watch, ended=ended
                )
            result.log += self._plugins.take_lost()
            result.duration_s = time.monotonic() - began
            result.log += [("warning", "variables", problem) for problem in problems]
            if result.is_state_lost:
                self._discard()
            return result

    def operation(self) -> AbstractContextManager[None]:
        """Exclude operations of other threads (see `Client`)."""
        return self._operations.one()

    def offer(self, functions: HostFunctions) -> None:
        """Let cells call functions of this process, now and after each restart (see `Client`)."""
        with self.operation():
            if self._calls is not None:
                self._calls.functions = functions
                return
            self._calls = HostCalls(self.place.calls, functions)
            if self._running is not None:
                self._introduce(self._running)

    def load_plugins(
        self, plugins: Iterable[PluginCode], removed: Iterable[str] = ()
    ) -> dict[str, str]:
        """Load plugins, and remove others, now and after each restart (see `Client`)."""
        with self.operation():
            self._ready()
            return self._plugins.update(plugins, removed)

    def overview(self, files: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return a first impression of data files (see `Client`)."""
        with self.operation():
            report = self._request({"op": "overview", "files": list(files)}, _OVERVIEW_S) or {}
        return mapping(report.get("files"))

    def view(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a view of the kernel's variables (see `Client`)."""
        with self.operation():
            self._restore(self._ready())
            return self._request({"op": "view", **wanted}, _OVERVIEW_S) or {}

    def _restore(self, running: RunningKernel) -> list[str]:
        """Fill a kernel from a stored state where needed, and return the problems."""
        limit_s = self._limits.start_timeout_s + RESTORE_S
        problems = running.restore(self._origin, partial(self._ask, running, limit_s=limit_s))
        self._interrupts.check()
        return problems

    def _request(self, operation: Operation, limit_s: float) -> dict[str, Any] | None:
        """Send an operation. The result is None if the operation ended the kernel."""
        # Values in a configuration that are not plain data, such as a date in YAML, go as text.
        payload = json.dumps(operation, default=str)
        exchange = self._run(self._ready(), "", payload, None, limit_s)
        if has_ended := exchange.ending != "reply":
            self._discard()
        self._interrupts.check()
        return None if has_ended else answer(operation["op"], exchange.reply)

    def test_plugin(self, name: str) -> list[list[str]]:
        """Run the tests that came with a plugin, and return name and failure, if any, of each."""
        with self.operation():
            test = {"op": "test", "name": name, "limit_s": (limit_s := self._limits.cell_timeout_s)}
            report = self._ask(self._ready(), test, _MOST_TESTS * limit_s)
            return rows(report.get("results"), 2)

    def update_session_var(self, session_var_dict: Mapping[str, str]) -> None:
        """Set variables plugins read, now or when the kernel starts."""
        with self.operation():
            self._session_vars |= {name: str(value) for name, value in session_var_dict.items()}
            if self._running is not None:
                self._introduce(self._running)

    def restore_from(self, origin: Origin) -> None:
        """Start from a stored state, now and after each restart (see `Client`)."""
        self._origin = origin

    def snapshot(self) -> KernelSnapshot:
        """Keep the state of this moment in a sleeping process (see `Client`)."""
        with self.operation():
            arrival, homes = self._fork({"op": "snapshot"})
            template = Template(arrival, self._limits.start_timeout_s, homes=homes)
            own = dict(self._plugins.loaded), dict(self._session_vars)
            return KernelSnapshot(template, *own, self._new_fork)

    def state_writer(self, skip: Mapping[str, str], limit_bytes: int) -> StateWriter:
        """Fork a child that holds and can write the state of this moment (see `Client`)."""
        asked = {"op": "state", "skip": dict(skip), "limit_bytes": limit_bytes}
        with self.operation():
            arrival, _ = self._fork(asked)
            return StateWriter(arrival.connection, arrival.handle)

    def _fork(self, operation: Operation) -> tuple[Handshake, Homes]:
        """Have the kernel fork a child, and return child and place of private folders."""
        if (running := self._running) is None:
            raise ForkRefused("it is not running")
        limit_s = self._limits.start_timeout_s
        ask = partial(self._ask, running, limit_s=limit_s)
        return running.fork(ask, operation, self.place.log_path, limit_s), running.process.homes

    def footprint(self) -> Footprint:
        """Return the memory of the kernel, or zeros when the kernel does not run."""
        return footprint(own.pid) if (own := self.process) else Footprint()

    def bounds(self) -> tuple[ResourceBound, ...]:
        """Return the bounds on the session's resources, with the mechanisms."""
        return self.place.guard.bounds

    def foreign_cells(self) -> list[str]:
        """Return, once, the code of cells that other clients ran (see `Client`)."""
        with self.operation():
            return self._running.foreign_cells() if self._running is not None else []

    @property
    def last_foreign_request(self) -> float:
        """Time of the last request of another client (see `Client`)."""
        return self._operations.last_foreign_request

    def left_behind(self) -> str:
        """Return how many processes that cells started still run, and their names."""
        return self.place.guard.left_behind()

    def interrupt(self) -> None:
        """Interrupt the running cell, or the start of the kernel that a cell waits for."""
        self._interrupts.request()
        if self.state == "busy" and (running := self._running) is not None:
            self._interrupts.send(running.process)

    def stop(self) -> None:
        """End the kernel and all descendants."""
        with self._starting_lock:
            self._is_closed = True
        self.interrupt()
        with self._operations.lock:
            starting = self._starting
            # Nothing ran yet in one that was not even met: it is not asked, and not waited for.
            grace_s = _SHUT_DOWN_S if self._running is not None else 0.0
            if starting is not None and not starting.cancel() and not starting.exception():
                self._running = self._running or self._adopt(starting.result())
            self._discard(grace_s)
            if self._calls is not None:
                self._calls.close()
            self.state = "stopped"
            on_stop, self._on_stop = self._on_stop, None
        if on_stop is not None:
            on_stop(self)

    def _ready(self) -> RunningKernel:
        """Return the kernel, started and prepared."""
        while True:
            if self._is_closed:
                raise KernelClosed(*_STOPPED)
            if self._running is not None and not self._running.process.is_alive:
                self._discard()
            if self._running is not None:
                return self._running
            self._connect(self._launched(), is_copy=False)

    def _launched(self) -> KernelProcess:
        try:
            return self._interrupts.result(self._launch())
        except KernelInterrupted:
            raise  # it starts on, for the next cell
        except KernelError:
            self._starting = None
            if self._is_closed:
                raise KernelClosed(*_STOPPED) from None
            raise
        except OSError as error:
            self._starting = None
            raise KernelStartFailed(f"The kernel cannot be started: {error}.") from error

    def _connect(self, process: KernelProcess, *, is_copy: bool) -> None:
        """Take a process for the kernel's, once answering, and prepare all but a copy."""
        try:
            running = self._adopt(process)
            running.handshake(self._limits.start_timeout_s, self._interrupts)
            running.has_state = is_copy
            if not is_copy:  # what a restart must not lose
                self._introduce(running)
                self._plugins.load_again()
        except BaseException:
            self._discard()
            raise

    def _adopt(self, process: KernelProcess) -> RunningKernel:
        limit_chars = 2 * self._limits.output_limit_bytes + _MORE_OUTPUT_CHARS
        channel = KernelChannel(process.connection, process.death_fd, limit_chars)
        self._operations.open(channel)
        file = connection_file(self.place.folder, self.place.session_id)
        self._running = RunningKernel(process, channel, file, self._operations)
        self.place.guard.adopt(process.pid)
        return self._running

    def _introduce(self, running: RunningKernel) -> None:
        """Let a kernel's own side know the session: ids, variables, and the socket for calls."""
        ids = [self.place.env_id, self.place.session_id]
        host = str(self._calls.path) if self._calls is not None else ""
        session = {"op": "session", "ids": ids, "variables": self._session_vars, "host": host}
        self._ask(running, session)

    def _ask(
        self, running: RunningKernel, operation: Operation, limit_s: float | None = None
    ) -> dict[str, Any]:
        """Have the kernel's own side do something, and return the report."""
        exchange = self._run(running, "", json.dumps(operation), None, limit_s)
        if exchange.status in {"ok", "error"}:
            return answer(operation["op"], exchange.reply)
        if not (running.has_state and running.process.is_alive and self._interrupts.is_requested):
            self._discard()
        self._interrupts.check()
        problem = f"The kernel did not do `{operation['op']}` ({exchange.status})."
        raise KernelStartFailed(problem, f"Its log is {self.place.log_path}.")

    def _run(
        self,
        running: RunningKernel,
        code: str,
        payload: str,
        on_output: OutputHandler | None,
        limit_s: float | None = None,
        watch: CellWatch | None = None,
    ) -> Exchange:
        self._interrupts.sent_at = None
        self.state = "busy"
        exchange = running.channel.send(code, payload, on_output)
        deadline = time.monotonic() + (limit_s or self._limits.cell_timeout_s)
        wait = RequestWait(running, self._calls, self._interrupts, lambda: self._is_closed, watch)
        try:
            wait.until(exchange, deadline)
        except BaseException:
            # The caller was interrupted: the cell must not run on behind its back.
            wait.give_up(exchange, deadline, self._discard)
            raise
        finally:
            self.state = "stopped" if self._is_closed else "ready"
        return exchange

    def _discard(self, grace_s: float = 0.0) -> None:
        """End the process, if any. The next cell starts another."""
        running, self._running, self._starting = self._running, None, None
        if running is not None:
            running.end(grace_s)
