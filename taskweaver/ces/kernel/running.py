"""A running kernel: folders, process, channel, and the wait for the end of a request."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from taskweaver.ces.bounds.guard import SLICE_S, CellWatch, SessionGuard
from taskweaver.ces.claims import texts
from taskweaver.ces.common import CellStatus, CellTables, Client, PluginCode
from taskweaver.ces.errors import ForkRefused, KernelStartFailed
from taskweaver.ces.hostcalls import HostCalls
from taskweaver.ces.inkernel.process import ForkRequest
from taskweaver.ces.kernel.channel import Exchange, KernelChannel
from taskweaver.ces.kernel.operations import IdleOutput, Interrupts, Operations
from taskweaver.ces.process.footprint import Footprint, footprint
from taskweaver.ces.process.process import KernelProcess
from taskweaver.ces.state_transfer import Origin
from taskweaver.ces.template import (
    FORK_WAIT_S,
    Handshake,
    Rendezvous,
    Template,
    require_running,
)
from taskweaver.utils.file_system.safe_fs import is_plain_name
from taskweaver.utils.system.platform import HAS_LIVE_FORKS, system_name

Ask = Callable[[dict[str, Any]], dict[str, Any]]
"""Has the kernel's own side do an operation; returns its report."""

_SECOND_INTERRUPT_S, _KILL_S = 2.0, 5.0
_CONNECTIONS = "kernels"
_MOST_CHARS = 100


def connection_file(folder: Path, client_id: str) -> Path:
    """Return the Jupyter connection file of a kernel in the folder of the session.

    It is there while the kernel runs with its variables; code in a sandbox cannot read it.
    """
    is_name = is_plain_name(client_id) and len(client_id) <= _MOST_CHARS
    name = client_id if is_name else sha256(client_id.encode("utf-8", "replace")).hexdigest()
    return folder / _CONNECTIONS / f"{name}.json"


@dataclass(frozen=True, slots=True)
class KernelPaths:
    """Folders and files of a kernel.

    Attributes:
        env_id: Id of the environment.
        session_id: Id of the session.
        folder: Folder of the session.
        cwd: Its working directory.
        log_path: File for the process's own output.
        calls: Private folder with the sockets of the session's `HostCalls`; kernels may not write
            there.
        guard: Keeps the session within its bounds.
        devices: Devices that kernels of its sandbox may use.
        tables: Keeps the tables that its cells end with, if they are wanted.
        output: Waits for its output between operations.
    """

    env_id: str
    session_id: str
    folder: Path
    cwd: Path
    log_path: Path
    calls: Path
    guard: SessionGuard
    devices: tuple[Path, ...]
    tables: CellTables
    output: IdleOutput


@dataclass(slots=True)
class RunningKernel:
    """A running kernel, to be ended.

    Attributes:
        process: Its process.
        channel: The way to it.
        file: Its connection file for other programs, once it has its variables.
        operations: Its operations, between which its output is taken.
        has_state: Whether its variables are there: inherited, restored, or none to restore.
        is_unforkable: Whether a process that it was to fork did not come; it is not asked again.
    """

    process: KernelProcess
    channel: KernelChannel
    file: Path
    operations: Operations
    has_state: bool = False
    is_unforkable: bool = False

    def handshake(self, limit_s: float, interrupts: Interrupts) -> None:
        """Wait until the kernel answers.

        Raises:
            KernelStartFailed: If it ends before, or does not answer in time.
            KernelInterrupted: If an interrupt comes first.
        """
        ending = self.channel.handshake(
            limit_s, lambda: not (interrupts.is_requested or self.process.is_stopped)
        )
        interrupts.check()
        if ending == "reply":
            return
        if ending == "deadline" and self.process.is_stopped:
            self.process.kill()  # or the time to end by itself would be waited for
            reason = "its process was stopped, by a signal or a debugger"
            raise KernelStartFailed(f"The kernel did not start: {reason}.")
        if ending == "died":
            reason = f"its process ended ({self.process.exit_text()})"
        else:
            reason = f"it did not answer within {limit_s:g} s (execution.start_timeout_s)"
        log = self.process.log_path
        raise KernelStartFailed(f"The kernel did not start: {reason}.", f"Its log is {log}.")

    def restore(self, origin: Origin, ask: Ask) -> list[str]:
        """Fill the kernel from a stored state, unless filled before, and return the problems."""
        state = None if self.has_state else origin()
        own = self.process
        problems = [] if state is None else state.restore(own.pid, own.homes, ask)
        self.has_state = True
        if not self.file.exists():
            try:
                self._publish()
            except OSError as error:  # a full disk: its cells run all the same
                why = f"other Jupyter clients cannot join: {error.strerror}"
                return [*problems, why]
        return problems

    def _publish(self) -> None:
        """Write the connection file, which only this user can read."""
        key = self.process.connection["key"]
        own = {"key": key if isinstance(key, str) else key.decode(), "kernel_name": "python3"}
        self.file.parent.mkdir(mode=0o700, exist_ok=True)
        draft = self.file.with_suffix(".new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(self.process.connection | own, file)
        draft.replace(self.file)

    def fork(
        self, ask: Ask, operation: Mapping[str, Any], log_path: Path, timeout_s: float
    ) -> Handshake:
        """Have the kernel fork a child.

        Raises:
            ForkRefused: If it refuses, something holds it, or the child does not come.
        """
        if not HAS_LIVE_FORKS:
            raise ForkRefused(f"{system_name()} has no forks of running programs like this one")
        if not self.process.is_alive:
            raise ForkRefused("it is not running")
        if not self.has_state:
            raise ForkRefused("its variables are not restored yet")
        if self.is_unforkable:
            raise ForkRefused("a process that it forked did not come")
        runs = partial(require_running, self.process)
        runs()
        with self.process.homes.new() as home, Rendezvous(home) as expected:
            request = ForkRequest(str(expected.path), expected.secret, str(log_path))
            refused = ask({**operation, "request": asdict(request)})
            if refused:
                raise ForkRefused(*texts(refused.get("refused")))
            limit_s, own = min(timeout_s, FORK_WAIT_S), self.process
            try:
                return expected.arrive(own.death_fd, limit_s, runs)
            except ForkRefused:
                # Another process interferes: the ends of later rounds do not wait for it again.
                self.is_unforkable = True
                raise

    def foreign_cells(self) -> list[str]:
        """Return, once, the code of cells that other clients ran in a living kernel."""
        is_open = self.has_state and self.process.is_alive
        return self.channel.look().take() if is_open else []

    def end(self, grace_s: float) -> None:
        """End the kernel, with some time for an end of its own."""
        self.file.unlink(missing_ok=True)
        if grace_s and self.process.is_alive:
            self.channel.ask_to_shut_down()
        self.process.end(grace_s)
        self.operations.close()
        self.channel.close()


@dataclass(frozen=True, slots=True)
class RequestWait:
    """Wait for the end of a request.

    `calls` is None if the kernel has no host functions, `watch` for a request that is no cell.
    """

    running: RunningKernel
    calls: HostCalls | None
    interrupts: Interrupts
    is_closed: Callable[[], bool]
    watch: CellWatch | None

    def give_up(self, waiting: Exchange, deadline: float, discard: Callable[[], None]) -> None:
        """Interrupt a request whose caller was interrupted, and wait for the end.

        `discard` ends the kernel if the request goes on, or the wait is interrupted too.
        """
        waiting.on_output = None
        self.interrupts.sent_at = time.monotonic()
        self.running.process.interrupt()
        try:
            self.until(waiting, deadline)
        except BaseException:
            discard()
            raise
        if waiting.status in {"died", "timeout"} or not self.running.process.is_alive:
            discard()

    def _status(self, reply: Exchange) -> CellStatus:
        # A shell command that was interrupted is reported as a success: our own note decides.
        if self.interrupts.sent_at is not None:
            return "interrupted"
        if reply.ending == "died":
            return "died"
        return "ok" if reply.reply.get("status") == "ok" else "error"

    def until(self, waiting: Exchange, deadline: float) -> None:
        """Await a request's end, and note its status.

        Past the deadline interrupt, then kill the kernel.
        """
        running, interrupts = self.running, self.interrupts
        is_late, is_repeated = False, False
        while True:
            questions = self.calls.waiting_fd if self.calls else None
            until = time.monotonic() + (self.watch.slice_s if self.watch else SLICE_S)
            began = time.monotonic()
            running.channel.wait(waiting, until, questions)
            if running.channel.foreign.running and not waiting.has_begun:
                deadline += time.monotonic() - began  # another client's cell runs before it
            if self.calls is not None and waiting.ending == "deadline":
                is_open = interrupts.sent_at is None
                deadline += self.calls.settle(is_open=is_open)  # a person's time is free
            if waiting.ending != "deadline":
                waiting.status = "timeout" if is_late else self._status(waiting)
                return
            now = time.monotonic()
            is_over = self.watch is not None and self.watch.look()
            is_requested = self.is_closed() or interrupts.is_requested
            if interrupts.sent_at is None and (is_requested or is_over):
                interrupts.send(running.process)  # asked for before the cell began, or by a bound
            if interrupts.sent_at is None and now >= deadline:
                is_late = True
                interrupts.send(running.process)
            since_s = now - (interrupts.sent_at or now)
            if since_s > _SECOND_INTERRUPT_S and not is_repeated:
                is_repeated = True
                running.process.interrupt()
            if since_s > _KILL_S:
                running.process.kill()


NewKernel = Callable[["KernelSnapshot", str, Path | str | None, Path | str | None], Client]
"""Makes the kernel of a name, with the variables of a snapshot, in folder and working directory."""


@dataclass(frozen=True, slots=True)
class KernelSnapshot:
    """The state of a kernel at one moment, as a `Snapshot`. `new` makes a kernel that has it."""

    template: Template
    plugins: dict[str, PluginCode]
    session_vars: dict[str, str]
    new: NewKernel

    @property
    def footprint(self) -> Footprint:
        """The memory in use."""
        return footprint(self.template.pid)

    def fork(
        self,
        session_id: str,
        session_dir: Path | str | None = None,
        cwd: Path | str | None = None,
    ) -> Client:
        """Return a client whose kernel has the variables of the snapshot (see `Snapshot`)."""
        return self.new(self, session_id, session_dir, cwd)

    def close(self) -> None:
        """Discard the snapshot. Kernels that started from the snapshot live on."""
        self.template.close()
