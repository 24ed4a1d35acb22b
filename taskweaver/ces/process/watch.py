"""Watching and ending processes: by handles of the system's where it has them (pidfd).

Elsewhere, as on macOS, a thread waits for each process, and a pipe stands for the handle: it can
be read from when the process has ended, as a pidfd can.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Container

import psutil

from taskweaver.utils.system.platform import has_process_handles

HAS_HANDLES = has_process_handles()
_KILL_WAIT_S = 5.0


def death_fd(process: subprocess.Popen[bytes]) -> int:
    """Return a file descriptor that can be read from when a child has ended; close it.

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


def send(pid: int, handle: int, number: signal.Signals) -> None:
    """Send a signal to a process, unless it ends meanwhile."""
    try:
        if HAS_HANDLES:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        return  # it ended since it was looked at


def kill_by_environment(variable: str, value: str, spared: Container[int]) -> bool:
    """Kill this user's processes that were started with a variable of a value, except `spared` ids.

    Returns:
        Whether there was any.
    """
    found = []
    for process in psutil.process_iter():
        try:
            is_marked = process.environ().get(variable) == value
            if is_marked and process.pid not in spared and process.is_running():
                process.kill()  # it compares the time of the start: never another process
                found.append(process)
        except psutil.Error:
            continue  # gone, or of another user
    psutil.wait_procs(found, timeout=_KILL_WAIT_S)
    return bool(found)
