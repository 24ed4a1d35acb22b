"""A kernel that runs: its process, and the channel to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from taskweaver.ces.channel import KernelChannel
from taskweaver.ces.errors import KernelStartFailed
from taskweaver.ces.interrupts import Interrupts
from taskweaver.ces.process import KernelProcess

_MORE_OUTPUT_CHARS = 100_000  # so that the kernel's own limit, in bytes, is the one that counts


@dataclass(slots=True)
class RunningKernel:
    """A kernel that runs. End it.

    Attributes:
        process: Its process.
        channel: The way to it.
        has_state: Whether its variables are there: inherited, restored, or none to restore.
    """

    process: KernelProcess
    channel: KernelChannel
    has_state: bool = False

    @classmethod
    def of(cls, process: KernelProcess, output_limit_bytes: int) -> Self:
        """Return the kernel a process runs, connected.

        Args:
            process: The process.
            output_limit_bytes: What it may print in a cell.
        """
        limit_chars = 2 * output_limit_bytes + _MORE_OUTPUT_CHARS
        return cls(process, KernelChannel(process.connection, process.death_fd, limit_chars))

    def greet(self, limit_s: float, interrupts: Interrupts) -> None:
        """Wait until it answers.

        Args:
            limit_s: Longest wait.
            interrupts: Interrupts of the operation that waits.

        Raises:
            KernelStartFailed: If it ends before, or does not answer in time.
            KernelInterrupted: If an interrupt comes first.
        """
        ending = self.channel.greet(limit_s, lambda: not interrupts.is_requested)
        interrupts.check()
        if ending == "reply":
            return
        if ending == "died":
            reason = f"its process ended ({self.process.exit_text()})"
        else:
            reason = f"it did not answer within {limit_s:g} s (execution.start_timeout_s)"
        log = self.process.log_path
        raise KernelStartFailed(f"The kernel did not start: {reason}.", f"Its log is {log}.")

    def end(self, grace_s: float) -> None:
        """End it, with some time to end by itself."""
        if grace_s and self.process.is_alive:
            self.channel.ask_to_shut_down()
        self.process.end(grace_s)
        self.channel.close()
