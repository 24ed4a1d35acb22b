"""Fork of a process: the child drops its parent's files and announces itself to its owner.

A forked process has its parent's open files, sockets and event queues, and writes to an inherited
event queue reach the parent too. So all of them are replaced before anything else runs.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from taskweaver.ces.inkernel.process.memory_guard import close_memory


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """Request to fork a process.

    Attributes:
        socket: Socket at which its owner expects it; see `announce`.
        secret: Proof of its identity there, so that no other process is taken for it.
        log: File for its output outside of cells.
        kernel_id: Mark of the processes it starts; empty for a template.
        connection_file: Addresses a kernel listens on; empty for a template.
        cwd: Its working directory; empty keeps the present one.
    """

    socket: str
    secret: str
    log: str
    kernel_id: str = ""
    connection_file: str = ""
    cwd: str = ""


def fork(request: ForkRequest, *, is_template: bool = False) -> tuple[int, socket.socket | None]:
    """Fork this process.

    The memory of a template is closed to its session's code before another process knows of it.

    Returns:
        In the parent the child's process id, and None. In the child 0, and the connection to the
        owner that expects it.

    Raises:
        OSError: If the system has no room for another process.
    """
    before = open_files()
    pid = os.fork()
    if pid:
        return pid, None
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        _cut_loose(request.log, before)
        if is_template:
            close_memory()
        return 0, announce(request.socket, {"pid": os.getpid()}, request.secret)
    except OSError:
        os._exit(1)  # it is not expected any more, and must not go on as a second kernel


def announce(path: str, message: dict[str, Any], secret: str = "") -> socket.socket:
    """Connect to the owner that expects this process; send a process handle and memory totals.

    The handle is a pidfd: it works across process id namespaces and never means another process.
    The second file is ``smaps_rollup`` of this process, which its owner may not open if the memory
    is closed; see `ces.process.footprint`.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    handles = [os.pidfd_open(os.getpid())]
    with suppress(OSError):  # without it the owner estimates
        handles.append(os.open("/proc/self/smaps_rollup", os.O_RDONLY | os.O_CLOEXEC))
    line = json.dumps({**message, "secret": secret}).encode() + b"\n"
    socket.send_fds(connection, [line], handles)
    for handle in handles:
        os.close(handle)
    return connection


def die_with(connection: socket.socket) -> None:
    """Have the system kill this process when the other end of a connection is closed.

    Nothing may be sent on it from now on: that would count as its end.
    """
    fcntl.fcntl(connection, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(connection, fcntl.F_GETFL)
    fcntl.fcntl(connection, fcntl.F_SETFL, flags | os.O_ASYNC)


def _cut_loose(log: str, inherited: Mapping[int, str]) -> None:
    """Replace all inherited files: output goes to the log, the rest nowhere.

    The numbers stay taken, because inherited objects may close them. A file that the at-fork
    handler of a library opened anew in this process is kept: it is this process's own, and has
    another link than the inherited file of its number.
    """
    present = open_files()
    nowhere = os.open(os.devnull, os.O_RDWR)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for fd, link in present.items():
        if fd in {1, 2}:
            os.dup2(output, fd)
        elif inherited.get(fd) == link:
            _replace(fd, nowhere)
    os.close(nowhere)
    os.close(output)


def _replace(fd: int, nowhere: int) -> None:
    try:
        if is_only_read(fd):
            _reopen(fd)
        else:
            os.dup2(nowhere, fd, inheritable=fd == 0)
    except OSError:
        return  # a file that may not be opened again: it is only read, and stays shared


def open_files() -> dict[int, str]:
    """Return the links of all open files by number, in the form of ``/proc/self/fd``."""
    found = dict[int, str]()
    for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - numbers are wanted
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - a text is wanted
        except OSError:
            continue  # the listing's own, closed by now
    return found


def is_only_read(fd: int) -> bool:
    """Return whether this is a file on disk that is open for reading only."""
    kind = os.fstat(fd).st_mode
    access = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
    return access == os.O_RDONLY and (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def _reopen(fd: int) -> None:
    """Open a file anew at the same offset: an inherited one shares its offset with the parent."""
    place = os.lseek(fd, 0, os.SEEK_CUR)
    own = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    os.lseek(own, place, os.SEEK_SET)
    os.dup2(own, fd, inheritable=False)
    os.close(own)
