"""Handles of processes, and the process at the other end of a local socket.

A handle of the system (pidfd) never means another process of the same number. Where the system has
none, as on macOS, a thread waits for each process, and a pipe stands for the handle: it can be read
from when the process has ended, as a pidfd can.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

import psutil

from taskweaver.ces.process import footprint
from taskweaver.utils.system.platform import has_process_handles

HAS_HANDLES = has_process_handles()
_CREDENTIALS = struct.Struct("3i")
_KILL_WAIT_S = 5.0
_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
OWNED: set[int] = set()
"""Process ids that have a handle: they are ended by it. A forked one carries its parent's mark."""
_RECENT: deque[int] = deque(maxlen=256)
"""Process ids whose handle was closed: such a process may need a moment to end."""


def death_fd(process: subprocess.Popen[bytes]) -> int:
    """Return a file descriptor, to be closed, that is readable when a child has ended.

    Raises:
        OSError: If there is no room for another one.
    """
    if HAS_HANDLES:
        return os.pidfd_open(process.pid)
    ended, end = os.pipe()
    threading.Thread(
        target=_wait, args=(process, end), name=f"waits-for-{process.pid}", daemon=True
    ).start()
    return ended


def _wait(process: subprocess.Popen[bytes], end: int) -> None:
    process.wait()
    with open(end, "wb") as pipe:
        try:
            pipe.write(b"\0")
            pipe.flush()
        except BrokenPipeError:
            return  # the watcher does not want to know any more


def send_signal(pid: int, handle: int, number: signal.Signals) -> None:
    """Send a signal to a process, unless ended meanwhile."""
    try:
        if HAS_HANDLES:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        return  # it ended since it was looked at


def peer_of(connection: socket.socket) -> int:
    """Return the id of the process that connected.

    Without namespaces, code of another session learns the addresses of all sockets from the system.
    """
    size = _CREDENTIALS.size
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(_CREDENTIALS.unpack(found)[0])


def descends(pid: int, ancestor: int) -> bool:
    """Return whether a process is another process or a descendant."""
    # A process between them may end just now; then the one below it has another parent.
    return _is_below(pid, ancestor) or _is_below(pid, ancestor)


def _is_below(pid: int, ancestor: int) -> bool:
    try:
        while pid > 1 and pid != ancestor:
            pid = psutil.Process(pid).ppid()
    except psutil.Error:
        return False
    return pid == ancestor


def is_owned(pid: int) -> bool:
    """Return whether a process has a handle here, or had one a moment ago."""
    return pid in OWNED or pid in _RECENT


class ProcessHandle:
    """A running process by a handle: a pidfd never means another process of the same number.

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
        """True if a signal or a tracer holds the process, which then answers nothing."""
        with suppress(psutil.Error):  # it has ended
            return psutil.Process(self.pid).status() in _STOPPED
        return False

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if not self.has_ended():
            send_signal(self.pid, self.death_fd, number)

    def reap(self) -> None:
        """Reap the process where no other process does: a first process inherits orphans.

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
