"""Handles of processes, which never mean another process of the same number."""

from __future__ import annotations

import os
import select
import signal
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from taskweaver.ces.process import footprint, watch

_KILL_WAIT_S = 5.0
_STOPPED = (b"T", b"t")
OWNED: set[int] = set()
"""Process ids that have a handle: they are ended by it. A forked one carries its parent's mark."""
_RECENT: deque[int] = deque(maxlen=256)
"""Process ids whose handle was closed: such a process may need a moment to end."""


def is_owned(pid: int) -> bool:
    """Return whether a process has a handle here, or had one a moment ago."""
    return pid in OWNED or pid in _RECENT


class ProcessHandle:
    """A process that runs, by a handle; a pidfd never means another process of its number.

    Attributes:
        pid: Process id.
        death_fd: Readable when the process has ended, so that waiting for it can be combined.
    """

    def __init__(self, pid: int, death_fd: int) -> None:
        self.pid = pid
        self.death_fd = death_fd
        OWNED.add(pid)

    def has_ended(self, within_s: float = 0.0) -> bool:
        """Return whether the process ends within a time."""
        return has_ended(self.death_fd, within_s)

    @property
    def is_stopped(self) -> bool:
        """True if a signal or a tracer holds it, so that it answers nothing until it is let go."""
        try:
            facts = Path(f"/proc/{self.pid}/stat").read_bytes()
        except OSError:
            return False  # it has ended, or the system has no such files
        # The name before the state stands in parentheses, and may hold some itself.
        return facts.rpartition(b")")[2].split()[0] in _STOPPED

    def send(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when the process has ended."""
        if not self.has_ended():
            watch.send(self.pid, self.death_fd, number)

    def reap(self) -> None:
        """Reap it where no other process does: a first process inherits orphans.

        Until then its namespace does not end. It must not be a `subprocess.Popen`.
        """
        with suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self.death_fd, os.WEXITED | os.WNOHANG)

    def close(self) -> None:
        """Give the handle back."""
        _RECENT.append(self.pid)
        OWNED.discard(self.pid)
        footprint.forget(self.pid)
        os.close(self.death_fd)


def wait_for_ends(handles: Iterable[int]) -> None:
    """Wait until killed processes, given by pidfds, ended, not until their parents notice."""
    deadline = time.monotonic() + _KILL_WAIT_S
    for handle in handles:
        has_ended(handle, max(deadline - time.monotonic(), 0.0))


def has_ended(handle: int, within_s: float = 0.0) -> bool:
    """Return whether a process, given by a pidfd, ends within a time."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(within_s * 1000))
