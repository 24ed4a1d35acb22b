"""The process of a kernel or template: fork, limits, first environment.

A forked process has its parent's open files, sockets and event queues, and writes to an inherited
event queue reach the parent too. So all of them are replaced before anything else runs. The child
announces itself to its owner.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

OWN_VARIABLES = frozenset({"TASKWEAVER_KERNEL_ID"})
"""Variables of the environment that mark the process itself."""
Source = socket.socket | IO[bytes] | int
_SET_DUMPABLE, _GET_NO_NEW_PRIVILEGES = 4, 39
_WHOLE_RANGE = ["0", "0", "4294967295"]
"""Ids of users in the machine's own namespace."""
_CPU_GRACE_S = 2
_LIMITED = (
    resource.RLIMIT_NPROC,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_CPU,
    resource.RLIMIT_NOFILE,
)


@dataclass(slots=True)
class ProcessBase:
    """Environment and import path before the first cell.

    Only differences from them belong to the stored state, so that the paths and the mark of one
    process do not enter another.
    """

    environment: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)

    def note(self) -> None:
        """Remember both as they are now."""
        self.environment, self.path = dict(os.environ), list(sys.path)

    def move(self, before: str, after: str) -> None:
        """Follow a process that was forked into another working directory."""
        self.path = [after if entry == before else entry for entry in self.path]


BASE = ProcessBase()


def close_memory() -> None:
    """Close this process's memory to other processes, in a sandbox with namespaces only.

    A template and the kernels in its sandbox have the same user, so a kernel may open
    ``/proc/PID/mem`` of the template and rewrite it; every later kernel would start from that. A
    process that is not dumpable is closed to others. Its owner outside reads how much memory it
    uses from a file that the process hands over, see `ces.process.footprint`. Without a namespace
    for users the protection is left out: the owner finds the processes of a sandbox by their
    environment, which an ordinary user could not read then, and no namespace ends them.
    """
    libc = ctypes.CDLL(None)
    with suppress(OSError):  # the ids of users are not shown
        users = Path("/proc/self/uid_map").read_text("ascii").split()
        if users != _WHOLE_RANGE and libc.prctl(_GET_NO_NEW_PRIVILEGES, 0, 0, 0, 0) == 1:
            libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def open_memory() -> None:
    """Undo `close_memory` in a forked process that becomes a kernel."""
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1, 0, 0, 0)


def set_limits(*limits: int) -> None:
    """Limit this process and all child processes, see ``setrlimit(2)``, and leave no core file.

    They are the number of processes, bytes of a file, seconds of processor time and open files, or
    the first of these; 0 sets no limit, and a lower one that is set already stays.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, limit in zip(_LIMITED, limits, strict=False):
        if limit:
            # Over the first limit on processor time, the system says why; over the second, no more.
            most = limit + _CPU_GRACE_S if kind == resource.RLIMIT_CPU else limit
            before = resource.getrlimit(kind)[1]
            if before != resource.RLIM_INFINITY:
                limit, most = min(limit, before), min(most, before)
            resource.setrlimit(kind, (limit, most))


def readable(sources: Sequence[Source], timeout_s: float | None = None) -> set[int]:
    """Return the file numbers that can be read, or are closed at the other end.

    ``select`` refuses numbers from 1,024 on, which an owner of many kernels has.
    """
    poll = select.poll()
    for source in sources:
        poll.register(source, select.POLLIN)
    timeout_ms = None if timeout_s is None else 1000 * timeout_s
    return {fd for fd, _ in poll.poll(timeout_ms)}


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
        replace_files(request.log, before, keeps_reading=True)
        if is_template:
            close_memory()
        return 0, announce(request)
    except OSError:
        os._exit(1)  # it is not expected any more, and must not go on as a second kernel


def announce(request: ForkRequest, error: str = "") -> socket.socket:
    """Connect to the owner that expects this process, with a process handle and memory totals.

    With an error it says why no process comes. The handle is a pidfd: it works across process id
    namespaces and never means another process. The second file is ``smaps_rollup`` of this process,
    which its owner may not open if the memory is closed; see `ces.process.footprint`.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(request.socket)
    handles = [os.pidfd_open(os.getpid())]
    with suppress(OSError):  # without it the owner estimates
        handles.append(os.open("/proc/self/smaps_rollup", os.O_RDONLY | os.O_CLOEXEC))
    told = {"error": error} if error else {"pid": os.getpid()}
    line = json.dumps({**told, "secret": request.secret}).encode() + b"\n"
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


def replace_files(log: str, inherited: Mapping[int, str], *, keeps_reading: bool = False) -> None:
    """Replace all inherited files: output goes to the log, the rest nowhere.

    With `keeps_reading` files that are only read stay open. The numbers stay taken, because
    inherited objects may close them. A file that the at-fork handler of a library opened anew in
    this process is kept: it is this process's own, and has another link than the inherited file of
    its number.
    """
    present = open_files()
    nowhere = os.open(os.devnull, os.O_RDWR)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for fd, link in present.items():
        if fd in {1, 2}:
            os.dup2(output, fd)
        elif inherited.get(fd) == link:
            if keeps_reading and is_only_read(fd):
                with suppress(OSError):  # one that may not be opened again stays shared
                    _reopen(fd)
            else:
                os.dup2(nowhere, fd, inheritable=fd == 0)
    os.close(nowhere)
    os.close(output)


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
    """Open a file anew at the same offset: an inherited file shares the offset with the parent."""
    place = os.lseek(fd, 0, os.SEEK_CUR)
    own = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    os.lseek(own, place, os.SEEK_SET)
    os.dup2(own, fd, inheritable=False)
    os.close(own)
