"""One command outside of kernels: streamed, limited, and ended with all descendants."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Literal

from taskweaver.ces.command_process import Command, CommandLimits, RunningCommand, started
from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.config.errors import ConfigError
from taskweaver.utils.system.cancel import CancelToken

_CONTINUATION = bytes(range(0x80, 0xC0))
__all__ = ["Command", "CommandLimits", "CommandResult", "CommandStatus", "run_command"]

CommandStatus = Literal["ok", "failed", "timeout", "cancelled", "refused"]
_Ending = Literal["by itself", "timeout", "cancelled", "bounded"]
_CHUNK_BYTES = 64 << 10
_DRAIN_BYTES = 4 << 20
_LONGEST_POLL_S = 3600.0
_BY_SIGNAL = 128


class CommandOutput:
    """Receiver of the bytes that a command prints. Close the receiver.

    The first bytes go to the log as they come; of the rest the last are kept, and written to the
    log at the end, after a note of how many are missing.
    """

    def __init__(self, log: IO[bytes] | None, limits: CommandLimits) -> None:
        """Begin. The caller owns the log, if there is one."""
        self._log = log
        self._left = limits.output_bytes or None
        self._tail_bytes = limits.tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._total = self._written = 0

    def take(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            OSError: If the log cannot be written.
        """
        self._total += len(data)
        self._head += data[: self._tail_bytes - len(self._head)]
        self._tail += data
        del self._tail[: -self._tail_bytes]
        kept = data if self._left is None else data[: self._left]
        if self._left is not None:
            self._left -= len(kept)
        self._written += len(kept)
        self._write(kept)

    def close(self) -> None:
        """Write the note and the end to the log, where bytes are missing.

        Raises:
            OSError: If the log cannot be written.
        """
        over = self._total - self._written
        if over:
            end = bytes(self._tail[-over:])
            lost = over - len(end)
            note = f"\n... {lost:,} bytes left out ...\n" if lost else ""
            self._written = self._total
            self._write(note.encode() + end)

    def _write(self, data: bytes) -> None:
        if data and self._log is not None:
            self._log.write(data)

    @property
    def head(self) -> str:
        """The first bytes, as `tail`."""
        return bytes(self._head).decode("utf-8", "backslashreplace")

    @property
    def tail(self) -> str:
        """The last bytes as text, with hexadecimal escapes for bytes that are no UTF-8."""
        data = bytes(self._tail)
        if self._total > len(data):  # the first character may be cut
            data = data[:3].lstrip(_CONTINUATION) + data[3:]
        return data.decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Outcome of a command.

    Attributes:
        status: ``ok``: exit status 0. ``failed``: another one, or a signal. ``timeout`` and
            ``cancelled``: it was stopped. ``refused``: it was not started.
        exit_code: Its exit status, 128 and more for a signal; None when it was stopped, or never
            started.
        signal: Name of the signal that ended it; empty for none.
        seconds: How long it took.
        head: Beginning of its output, standard output and errors together.
        tail: Its end.
        reason: Why it was refused, or which bounds it exceeded; else empty.
    """

    status: CommandStatus
    exit_code: int | None = None
    signal: str = ""
    seconds: float = 0.0
    head: str = ""
    tail: str = ""
    reason: str = ""

    @property
    def is_ok(self) -> bool:
        """True if the exit status is 0."""
        return self.status == "ok"

    @property
    def ending(self) -> str:
        """Description of the end."""
        match self.status:
            case "timeout":
                return f"stopped after {self.seconds:.4g} s, its time limit"
            case "cancelled":
                return f"cancelled after {self.seconds:.4g} s"
            case "refused":
                return f"not started: {self.reason}"
        if self.reason and self.status == "failed":
            return f"ended by a limit: {self.reason}"
        if self.signal:
            return f"killed by {self.signal}"
        return f"exit status {self.exit_code}"


def run_command(
    command: Command,
    *,
    log: IO[bytes] | None = None,
    cancel: CancelToken | None = None,
) -> CommandResult:
    """Run a command to its end, and end whatever it leaves running.

    Args:
        command: The command.
        log: Unbuffered file its output is written to in this thread as it comes, byte for byte,
            within its limit; None for none.
        cancel: Stops it; None for no cancellation.

    Raises:
        OSError: If the log cannot be written; the command is ended.
    """
    output = CommandOutput(log, command.limits)
    began = time.monotonic()
    with ExitStack() as stack:
        try:
            running = stack.enter_context(started(command))
        except (SandboxUnavailable, ConfigError, OSError, ValueError) as error:
            return CommandResult("refused", reason=str(error))
        ending = _follow(running, output, command.limits.timeout_s, cancel)
        seconds = time.monotonic() - began
        exceeded = running.guard.finish()
        if running.guard.is_exceeded:
            ending = "bounded"
        code = running.end()
        _drain(running.output_fd, output)
        output.close()
        if ending == "by itself" and not running.has_begun:
            reason = f"the sandbox did not start: {' '.join(output.tail.split())}"
            return CommandResult("refused", seconds=seconds, reason=reason)
    status, exit_code, by = _judged(ending, code)
    return CommandResult(status, exit_code, by, seconds, output.head, output.tail, reason=exceeded)


def _follow(
    running: RunningCommand, output: CommandOutput, timeout_s: float, cancel: CancelToken | None
) -> _Ending:
    """Take the output until the command ends by itself, or has to."""
    deadline = time.monotonic() + timeout_s if timeout_s else float("inf")
    poll = select.poll()
    poll.register(running.death_fd, select.POLLIN)
    poll.register(running.output_fd, select.POLLIN)
    with _bell(cancel) as bell_fd:
        poll.register(bell_fd, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            if running.guard.look():
                return "bounded"
            wait_s = min(left, running.guard.slice_s or _LONGEST_POLL_S)
            ready = {fd for fd, _ in poll.poll(wait_s * 1000)}
            if bell_fd in ready:
                return "cancelled"
            if running.death_fd in ready:
                return "by itself"
            if running.output_fd in ready:
                data = os.read(running.output_fd, _CHUNK_BYTES)
                if data:
                    output.take(data)
                else:  # it closed its output, and goes on
                    poll.unregister(running.output_fd)


def _drain(fd: int, output: CommandOutput) -> None:
    """Read the rest of the pipe, at most as much as a pipe holds: a program may still write."""
    left = _DRAIN_BYTES
    with suppress(BlockingIOError):  # a program holds it open and writes nothing
        while left > 0 and (data := os.read(fd, _CHUNK_BYTES)):
            output.take(data)
            left -= len(data)


@contextmanager
def _bell(cancel: CancelToken | None) -> Iterator[int]:
    """Give a file descriptor that becomes readable when the token is cancelled."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        if cancel is None:
            yield ours.fileno()
            return

        def ring() -> None:
            with suppress(OSError):  # cancelled at the very end: nobody waits any more
                theirs.send(b"\0")

        with cancel.on_cancel(ring):
            yield ours.fileno()


def _judged(ending: _Ending, code: int) -> tuple[CommandStatus, int | None, str]:
    """Return status, exit code and signal, which bubblewrap and shells give as 128 and more."""
    if ending == "bounded":
        return "failed", None, ""
    if ending != "by itself":
        return ending, None, ""
    exit_code = _BY_SIGNAL - code if code < 0 else code
    name = ""
    with suppress(ValueError):  # an exit status that is none of the signals
        name = signal.Signals(exit_code - _BY_SIGNAL).name
    return ("failed" if exit_code else "ok"), exit_code, name
