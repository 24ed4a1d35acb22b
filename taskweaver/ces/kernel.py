"""A session's kernel: runs cells one after another, and comes back after whatever one does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from taskweaver.ces.artifacts import accept
from taskweaver.ces.channel import Exchange, KernelChannel
from taskweaver.ces.common import CellStatus, ExecutionResult, OutputHandler
from taskweaver.ces.errors import (
    ForkRefused,
    KernelClosed,
    KernelError,
    KernelStartFailed,
    PluginLoadFailed,
)
from taskweaver.ces.footprint import Footprint, footprint
from taskweaver.ces.inkernel.birth import Birth
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process import KernelHome, KernelProcess
from taskweaver.ces.reported import Report, fields, read_report, text, texts, trace
from taskweaver.ces.snapshot import KernelSnapshot
from taskweaver.ces.template import Expectation, Template

_SLICE_S = 0.25
_SECOND_INTERRUPT_S = 2.0
_KILL_S = 5.0
_SHUT_DOWN_S = 2.0
_MORE_OUTPUT_CHARS = 100_000  # so that the kernel's own limit, in bytes, is the one that counts


@dataclass(frozen=True, slots=True)
class KernelPlace:
    """Where a kernel belongs.

    Attributes:
        env_id: Id of the environment.
        session_id: Id of the session.
        folder: Folder of the session.
        cwd: Its working directory.
        log_path: File for the process's own output.
    """

    env_id: str
    session_id: str
    folder: Path
    cwd: Path
    log_path: Path


@dataclass(slots=True)
class _Running:
    process: KernelProcess
    channel: KernelChannel


class Kernel:
    """A kernel that is started when needed and restarted when it died.

    Attributes:
        state: ``not started``, ``starting``, ``ready``, ``busy``, ``restarting`` or ``stopped``.
        place: Where it belongs.
    """

    def __init__(
        self,
        place: KernelPlace,
        limits: KernelLimits,
        launch: Callable[[KernelPlace], Future[KernelProcess]],
        origin: KernelSnapshot | None = None,
    ) -> None:
        """Prepare a kernel; nothing runs yet unless it comes from a snapshot.

        Args:
            place: Where it belongs.
            limits: What it may use.
            launch: Starts a process in the background.
            origin: Fork it off a snapshot, with all its variables.

        Raises:
            ForkRefused: If it cannot be forked off the snapshot.
        """
        self.state = "not started"
        self.place = place
        self._limits = limits
        self._launch_process = launch
        self._one_cell = threading.RLock()
        self._starting: Future[KernelProcess] | None = None
        self._starting_lock = threading.Lock()
        self._running: _Running | None = None
        self._plugins: dict[str, dict[str, Any]] = {}
        self._session_vars: dict[str, str] = {}
        self._interrupted_at: float | None = None
        self._is_closed = False
        self.is_forked = origin is not None
        if origin is not None:
            self._take_over(origin)

    def start(self) -> None:
        """Start the process in the background."""
        if not self._is_closed and self._running is None:
            self._launch()

    def _launch(self) -> Future[KernelProcess]:
        with self._starting_lock:
            if self._starting is None:
                self.state = "starting"
                self._starting = self._launch_process(self.place)
            return self._starting

    def execute(self, exec_id: str, code: str, on_output: OutputHandler | None) -> ExecutionResult:
        """Run a cell to its end, its deadline, or the kernel's death.

        Raises:
            KernelStartFailed: If the kernel does not come up.
            KernelClosed: If the kernel was stopped.
        """
        with self._one_cell:
            running = self._ready()
            began = time.monotonic()
            payload = json.dumps({"op": "cell", "exec_id": exec_id})
            status, exchange = self._run(running, code, payload, on_output)
            result = self._result(exec_id, code, status, exchange)
            result.duration_s = time.monotonic() - began
            if result.is_state_lost:
                self._discard()
            return result

    def load_plugin(self, name: str, source: str, config: Mapping[str, Any]) -> None:
        """Load a plugin now and after each restart.

        Raises:
            PluginLoadFailed: If its code raises; it is not loaded again then.
        """
        with self._one_cell:
            operation = {"op": "load", "name": name, "source": source, "config": dict(config)}
            running = self._ready()
            if self._plugins.get(name) == operation:
                return  # it came with the fork, with its state
            error = text(self._ask(running, operation).get("error"))
            if error:
                raise PluginLoadFailed(f"Plugin {name!r}: {error}")
            self._plugins[name] = operation

    def test_plugin(self, name: str) -> list[str]:
        """Run a plugin's own tests; return one message per failure."""
        with self._one_cell:
            report = self._ask(self._ready(), {"op": "test", "name": name})
            return texts(report.get("failures"))

    def update_session_vars(self, values: Mapping[str, str]) -> None:
        """Set variables plugins read, now or when the kernel starts."""
        with self._one_cell:
            self._session_vars.update({name: str(value) for name, value in values.items()})
            if self._running is not None:
                self._ask(self._running, {"op": "variables", "values": self._session_vars})

    def snapshot(self) -> KernelSnapshot:
        """Keep the state of this moment: a sleeping process from which kernels are forked.

        Raises:
            ForkRefused: If something that runs or is open does not survive a fork; says what.
        """
        with self._one_cell:
            running = self._running
            if running is None or not running.process.is_alive:
                raise ForkRefused(["it is not running"])
            homes = running.process.homes
            with KernelHome(homes) as home, Expectation(home.folder) as expected:
                birth = Birth(str(expected.path), str(self.place.log_path))
                refused = self._ask(running, {"op": "snapshot", "birth": asdict(birth)})
                if refused:
                    raise ForkRefused(texts(refused.get("refused")))
                timeout_s = self._limits.start_timeout_s
                arrival = expected.arrive(running.process.death_fd, timeout_s)
            template = Template(arrival, timeout_s, homes=homes)
            return KernelSnapshot(template, dict(self._plugins), dict(self._session_vars))

    def _take_over(self, origin: KernelSnapshot) -> None:
        process = origin.template.spawn(self.place.cwd, self.place.log_path)
        self._plugins = dict(origin.plugins)
        self._session_vars = dict(origin.session_vars)
        try:
            self._greet(self._adopt(process))
        except BaseException:
            self._discard()
            raise
        self.state = "ready"

    @property
    def footprint(self) -> Footprint:
        """The memory it takes up; zeros when it does not run."""
        running = self._running
        return Footprint() if running is None else footprint(running.process.pid)

    def interrupt(self) -> None:
        """Interrupt the running cell, if one runs."""
        running = self._running
        if self.state == "busy" and running is not None:
            self._interrupted_at = self._interrupted_at or time.monotonic()
            running.process.interrupt()

    def stop(self) -> None:
        """End the kernel and everything it started."""
        with self._starting_lock:
            self._is_closed = True
        self.interrupt()
        with self._one_cell:
            starting = self._starting
            if self._running is None and starting is not None and not starting.exception():
                self._adopt(starting.result())
            self._discard(grace_s=_SHUT_DOWN_S)
            self.state = "stopped"

    def _ready(self) -> _Running:
        """Return the kernel, started and prepared."""
        if self._is_closed:
            raise KernelClosed("The kernel was stopped.", "Start another session.")
        if self._running is not None and not self._running.process.is_alive:
            self._discard()
        if self._running is not None:
            return self._running
        try:
            process = self._launch().result()
        except KernelError:
            self._starting = None
            raise
        except OSError as error:
            self._starting = None
            raise KernelStartFailed(f"The kernel cannot be started: {error}.") from error
        running = self._adopt(process)
        try:
            self._greet(running)
            self._prepare(running)
        except BaseException:
            self._discard()
            raise
        return running

    def _adopt(self, process: KernelProcess) -> _Running:
        limit_chars = 2 * self._limits.output_limit_bytes + _MORE_OUTPUT_CHARS
        channel = KernelChannel(process.connection, process.death_fd, limit_chars)
        self._running = _Running(process, channel)
        return self._running

    def _greet(self, running: _Running) -> None:
        limit_s = self._limits.start_timeout_s
        ending = running.channel.greet(limit_s)
        if ending == "reply":
            return
        log = running.process.log_path
        if ending == "died":
            reason = f"its process ended ({running.process.exit_text()})"
        else:
            reason = f"it did not answer within {limit_s:g} s (execution.start_timeout_s)"
        raise KernelStartFailed(f"The kernel did not start: {reason}.", f"Its log is {log}.")

    def _prepare(self, running: _Running) -> None:
        """Bring a fresh kernel to the state a restart must not lose."""
        ids = {"env_id": self.place.env_id, "session_id": self.place.session_id}
        session: dict[str, Any] = {"op": "session", **ids}
        variables: dict[str, Any] = {"op": "variables", "values": self._session_vars}
        for operation in (session, variables, *self._plugins.values()):
            self._ask(running, operation)

    def _ask(self, running: _Running, operation: dict[str, Any]) -> dict[str, Any]:
        """Have the kernel's own side do something; return its report."""
        status, exchange = self._run(running, "", json.dumps(operation), None)
        if status == "ok":
            return fields(exchange.reply)
        self._discard()
        what = f"The kernel did not do `{operation['op']}` ({status})."
        if operation["op"] == "load":
            raise PluginLoadFailed(f"Plugin {operation['name']!r} stopped the kernel: {status}.")
        raise KernelStartFailed(what, f"Its log is {self.place.log_path}.")

    def _run(
        self, running: _Running, code: str, payload: str, on_output: OutputHandler | None
    ) -> tuple[CellStatus, Exchange]:
        self._interrupted_at = None
        self.state = "busy"
        waiting = running.channel.send(code, payload, on_output)
        deadline = time.monotonic() + self._limits.cell_timeout_s
        try:
            return self._wait(running, waiting, deadline)
        except BaseException:
            # The caller was interrupted: the cell must not run on behind its back.
            waiting.on_output = None
            self._give_up(running, waiting, deadline)
            raise
        finally:
            self.state = "stopped" if self._is_closed else "ready"

    def _give_up(self, running: _Running, waiting: Any, deadline: float) -> None:
        """Interrupt a cell and wait for its end; end the kernel if that is interrupted too."""
        self._interrupted_at = time.monotonic()
        running.process.interrupt()
        try:
            status, _ = self._wait(running, waiting, deadline)
        except BaseException:
            self._discard()
            raise
        if status in {"died", "timeout"} or not running.process.is_alive:
            self._discard()

    def _wait(
        self, running: _Running, waiting: Any, deadline: float
    ) -> tuple[CellStatus, Exchange]:
        """Wait for the end of a cell; past the deadline interrupt, then kill."""
        is_late, interrupts = False, 1
        while True:
            exchange = running.channel.wait(waiting, time.monotonic() + _SLICE_S)
            if exchange.ending == "died":
                was_asked = self._interrupted_at is not None
                return ("timeout" if is_late else "interrupted" if was_asked else "died"), exchange
            if exchange.ending == "reply":
                status = _status(exchange, was_interrupted=self._interrupted_at is not None)
                return ("timeout" if is_late else status), exchange
            now = time.monotonic()
            if self._interrupted_at is None and self._is_closed:
                self._interrupted_at = now  # stopped before the cell could be interrupted
                running.process.interrupt()
            if self._interrupted_at is None and now >= deadline:
                is_late, self._interrupted_at = True, now
                running.process.interrupt()
            since_s = now - (self._interrupted_at or now)
            if since_s > _SECOND_INTERRUPT_S and interrupts == 1:
                interrupts = 2
                running.process.interrupt()
            if since_s > _KILL_S:
                running.process.kill()

    def _result(
        self, exec_id: str, code: str, status: CellStatus, exchange: Exchange
    ) -> ExecutionResult:
        is_lost = self._running is None or not self._running.process.is_alive
        is_lost = is_lost or exchange.ending == "died"
        report = Report() if is_lost else read_report(exchange.reply)
        return ExecutionResult(
            exec_id,
            code,
            is_success=status == "ok",
            error=None if status == "ok" else self._error(status, exchange, is_lost=is_lost),
            output=report.output,
            stdout=exchange.stdout,
            stderr=exchange.stderr,
            log=report.log,
            artifact=accept(report.artifacts, self.place.cwd, self._limits.artifact_limit_bytes),
            variables=report.variables,
            status=status,
            is_state_lost=is_lost,
            is_truncated=report.is_truncated or exchange.is_cut,
        )

    def _error(self, status: CellStatus, exchange: Exchange, *, is_lost: bool) -> str:
        exit_text = self._running.process.exit_text() if self._running else "stopped"
        limit_s = self._limits.cell_timeout_s
        reasons = {
            "timeout": f"The cell was stopped after {limit_s:g} s (execution.cell_timeout_s).",
            "interrupted": "The cell was interrupted.",
            "died": f"The kernel died while the cell ran ({exit_text}).",
        }
        lost = "The Python session was restarted: all variables are gone." if is_lost else ""
        return "\n".join(filter(None, [trace(exchange.reply), reasons.get(status, ""), lost]))

    def _discard(self, grace_s: float = 0.0) -> None:
        """End the process, if there is one; the next cell starts another."""
        running, self._running, self._starting = self._running, None, None
        if running is None:
            return
        if grace_s and running.process.is_alive:
            running.channel.ask_to_shut_down()
        running.process.end(grace_s)
        running.channel.close()


def _status(exchange: Exchange, *, was_interrupted: bool) -> CellStatus:
    # A shell command that was interrupted is reported as a success; our own note decides.
    if was_interrupted:
        return "interrupted"
    return "ok" if exchange.reply.get("status") == "ok" else "error"
