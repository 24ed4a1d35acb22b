"""A kernel that runs: its process, and the channel to it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from taskweaver.ces.claims import texts
from taskweaver.ces.errors import ForkRefused, KernelStartFailed
from taskweaver.ces.inkernel.process import ForkRequest
from taskweaver.ces.kernel.channel import KernelChannel
from taskweaver.ces.kernel.interrupts import Interrupts
from taskweaver.ces.kernel.operations import Operations
from taskweaver.ces.process.process import KernelProcess
from taskweaver.ces.state.restorable import Origin
from taskweaver.ces.template.template import FORK_WAIT_S, Handshake, Rendezvous, require_running
from taskweaver.utils.system.platform import HAS_LIVE_FORKS, system_name

Ask = Callable[[dict[str, Any]], dict[str, Any]]
"""Has the kernel's own side do an operation; returns its report."""

_MORE_OUTPUT_CHARS = 100_000  # so that the kernel's own limit, in bytes, is the one that counts


@dataclass(slots=True)
class RunningKernel:
    """A kernel that runs. End it.

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

    @classmethod
    def of(
        cls, process: KernelProcess, output_limit_bytes: int, file: Path, operations: Operations
    ) -> Self:
        """Return the kernel a process runs, connected."""
        limit_chars = 2 * output_limit_bytes + _MORE_OUTPUT_CHARS
        channel = KernelChannel(process.connection, process.death_fd, limit_chars)
        operations.open(channel)
        return cls(process, channel, file, operations)

    def handshake(self, limit_s: float, interrupts: Interrupts) -> None:
        """Wait until it answers.

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
        """Fill it from a stored state, unless it has its variables; return the problems."""
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
        """Write the connection file; only this user can read it."""
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
        """Have it fork a child.

        Raises:
            ForkRefused: If it refuses, something holds it, or the child does not come.
        """
        if not HAS_LIVE_FORKS:
            raise ForkRefused([f"{system_name()} has no forks of running programs like this one"])
        if not self.process.is_alive:
            raise ForkRefused(["it is not running"])
        if not self.has_state:
            raise ForkRefused(["its variables are not restored yet"])
        if self.is_unforkable:
            raise ForkRefused(["a process that it forked did not come"])
        runs = partial(require_running, self.process)
        runs()
        with self.process.homes.new() as home, Rendezvous(home) as expected:
            request = ForkRequest(str(expected.path), expected.secret, str(log_path))
            refused = ask({**operation, "request": asdict(request)})
            if refused:
                raise ForkRefused(texts(refused.get("refused")))
            limit_s, own = min(timeout_s, FORK_WAIT_S), self.process
            try:
                return expected.arrive(own.death_fd, limit_s, runs)
            except ForkRefused:
                # Another process interferes: the ends of later rounds do not wait for it again.
                self.is_unforkable = True
                raise

    def foreign_cells(self) -> list[str]:
        """Return, once, the code of cells that other clients ran; none of a kernel that died."""
        is_open = self.has_state and self.process.is_alive
        return self.channel.look().take() if is_open else []

    def end(self, grace_s: float) -> None:
        """End it, with some time to end by itself."""
        self.file.unlink(missing_ok=True)
        if grace_s and self.process.is_alive:
            self.channel.ask_to_shut_down()
        self.process.end(grace_s)
        self.operations.close()
        self.channel.close()
