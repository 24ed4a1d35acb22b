"""One kernel process: watched, interrupted, and ended with all it started.

A kernel is started by `start_kernel`, or forked by a `Template`. One that is started asks the
system to be killed when the thread that started it ends, so kernels are started from the launcher
thread of their manager, which lives as long as they may. Children of a kernel that made sessions
of their own are found by the mark in their environment when the kernel is stopped or found dead.
When this process itself is killed, these children survive.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil

from taskweaver.ces.environment import KERNEL_MARK, kernel_environment, python_command
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process import footprint, watch
from taskweaver.ces.process.homes import Home, Homes
from taskweaver.utils.ids import create_id
from taskweaver.utils.system.owners import has_ended, pid_namespace
from taskweaver.utils.system.signals import signal_name

_KILL_WAIT_S = 5.0
_KILL_ROUNDS, _QUIET_ROUNDS = 10, 2
_ENVIRONMENT_BYTES = 32 << 10
_STOPPED = (b"T", b"t")
_CONNECTION_FILE = "c.json"
_OWNED: set[int] = set()
"""Process ids that have a handle: they are ended by it. A forked one carries its parent's mark."""
_RECENT: deque[int] = deque(maxlen=256)
"""Process ids whose handle was closed: such a process may need a moment to end."""


def is_owned(pid: int) -> bool:
    """Return whether a process has a handle here, or had one a moment ago."""
    return pid in _OWNED or pid in _RECENT


class ProcessHandle:
    """A process that runs, by a handle; a pidfd never means another process of its number.

    Attributes:
        pid: Process id.
        death_fd: Readable when the process has ended, so that waiting for it can be combined.
    """

    def __init__(self, pid: int, death_fd: int) -> None:
        self.pid = pid
        self.death_fd = death_fd
        _OWNED.add(pid)

    def has_ended(self, within_s: float = 0.0) -> bool:
        """Return whether the process ends within a time."""
        return _has_ended(self.death_fd, within_s)

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
        _OWNED.discard(self.pid)
        footprint.forget(self.pid)
        os.close(self.death_fd)


class KernelProcess:
    """A running kernel process and its private folder of sockets.

    Attributes:
        id: Marks the processes it starts.
        pid: Process id.
        connection: Addresses and key, as in a Jupyter connection file.
        log_path: Where the process's own output goes: crashes, messages of native libraries.
        homes: Place for private folders that the process sees too.
    """

    def __init__(
        self,
        home: KernelHome,
        log_path: Path,
        handle: ProcessHandle,
        exit_code: Callable[[], int | None],
        lifeline: socket.socket | None = None,
    ) -> None:
        """Take charge of a process.

        `exit_code` collects its exit code once it has ended: negative for a signal, None if
        unknown. The end of the connection `lifeline` is the process's end.
        """
        self.id = home.id
        self.connection = home.connection
        self.log_path = log_path
        self.homes = home.homes
        self.pid = handle.pid
        self.death_fd = handle.death_fd
        self._home = home
        self._handle = handle
        self._exit_code = exit_code
        self._lifeline = lifeline

    @property
    def is_alive(self) -> bool:
        """True if the process runs."""
        return not self._handle.has_ended()

    @property
    def is_stopped(self) -> bool:
        """True if something holds the process; see `ProcessHandle.is_stopped`."""
        return self._handle.is_stopped

    def exit_text(self) -> str:
        """Return a phrase on how the process ended."""
        if self.is_alive:
            return "it still runs"
        code = self._exit_code()
        if code is None:
            return "it ended"
        if code < 0:
            return f"killed by {signal_name(-code)}"
        return f"exit status {code}"

    def interrupt(self) -> None:
        """Send the kernel a SIGINT."""
        self._handle.send(signal.SIGINT)

    def kill(self) -> None:
        """Kill the process."""
        self._handle.send(signal.SIGKILL)

    def end(self, grace_s: float) -> None:
        """Wait for the process to end by itself, then kill it and everything it started."""
        try:
            if not self._handle.has_ended(grace_s):
                self.kill()
                self._handle.has_ended(_KILL_WAIT_S)
            self._exit_code()
        finally:
            self._handle.close()
            if self._lifeline is not None:
                self._lifeline.close()
            kill_marked(self.id)
            self._home.remove()


class KernelHome:
    """The private folder of a kernel, with its connection file.

    `id` marks the processes started by the one that lives here. No other user can look into
    `place`.
    """

    def __init__(self, homes: Homes | None = None) -> None:
        """Prepare it in `homes`; None takes the place for temporary files."""
        self.id = create_id("kernel")
        self.homes = homes or Homes()
        self.place = self.homes.new()
        try:
            self.connection = _write_connection(self.place)
            self.file = self.place.path / _CONNECTION_FILE
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the folder."""
        self.place.remove()

    def __enter__(self) -> KernelHome:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def start_kernel(cwd: Path, log_path: Path, limits: KernelLimits) -> KernelProcess:
    """Start a kernel; it is not ready yet.

    Raises:
        OSError: If the process cannot be started.
    """
    home = KernelHome()
    command = launcher_command("kernel", home.file, limits)
    try:
        process = start(command, kernel_environment(home.id), cwd=cwd, log_path=log_path)
    except BaseException:
        home.remove()
        raise
    handle = ProcessHandle(process.pid, watch.death_fd(process))
    return KernelProcess(home, log_path, handle, process.poll)


def launcher_command(kind: str, place: Path, limits: KernelLimits) -> list[str]:
    """Return the command of a process that ends with this one, see `inkernel.launcher`."""
    numbers = limits.for_launcher(os.getpid(), 0)
    return python_command(kind, str(place), *map(str, numbers))


def start(
    command: list[str],
    environment: Mapping[str, str],
    *,
    cwd: Path,
    log_path: Path,
    executable: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, without input.

    `executable` is the file of the program, where it is not the first word of the command.

    Raises:
        OSError: If the process cannot be started.
    """
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        return subprocess.Popen(
            command,
            executable=executable,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _write_connection(home: Home) -> dict[str, Any]:
    """Choose addresses: ipc sockets in the private folder, TCP where the system has none."""
    from jupyter_client.connect import write_connection_file

    place: dict[str, Any] = {"ip": "127.0.0.1"}
    if hasattr(os, "fork"):
        place = {"transport": "ipc", "ip": str(home.path / "k")}
    key = secrets.token_hex(32).encode()
    _, connection = write_connection_file(str(home.draft / _CONNECTION_FILE), key=key, **place)
    return dict(connection)


def kill_marked(value: str, variable: str = KERNEL_MARK) -> bool:
    """Kill every process whose environment carries a mark, unless this process owns it.

    Returns:
        Whether there was any.
    """
    if not watch.HAS_HANDLES:
        return watch.kill_by_environment(variable, value, _OWNED)
    entry = f"{variable}={value}".encode()
    return _kill_those(entry, lambda entries: entry in entries)


def kill_all_marked(value: str, variable: str = KERNEL_MARK) -> bool:
    """Kill what carries a mark until none is left; return whether that was reached.

    A look may miss what was just forked by one that is gone: two in a row find nothing.
    """
    quiet = 0
    for _ in range(_KILL_ROUNDS):
        quiet = 0 if kill_marked(value, variable) else quiet + 1
        if quiet == _QUIET_ROUNDS:
            return True
    return False


def owned_mark() -> str:
    """Return a mark that names this process as the owner; all of them are of one length."""
    return create_id(f"{_owned_prefix()}{os.getpid():010d}")


def sweep_marked() -> bool:
    """Kill the processes that carry a mark of an owner that was killed before it could end them.

    A sandbox ends with its owner, except in a moment of its start, when bubblewrap waits for a part
    of itself.

    Returns:
        Whether there was any.
    """
    prefix = f"{KERNEL_MARK}={_owned_prefix()}".encode()

    def is_orphaned(entries: list[bytes]) -> bool:
        entry = next((entry for entry in entries if entry.startswith(prefix)), b"")
        owner = entry.removeprefix(prefix).partition(b"-")[0]
        return has_ended(os.fsdecode(owner))

    return _kill_those(prefix, is_orphaned)


def _owned_prefix() -> str:
    """Return the start of the marks of this namespace: process ids of another mean others."""
    return f"box-{pid_namespace()}-"


def _kill_those(beginning: bytes, is_meant: Callable[[list[bytes]], bool]) -> bool:
    """Kill the processes whose environment is meant, except those with a handle here.

    Args:
        beginning: Bytes that every such environment holds; others are not taken apart.
        is_meant: Decides by the entries of an environment.
    """

    def is_one(pid: int) -> bool:
        environment = _environment(pid)
        return beginning in environment and is_meant(environment.split(b"\0"))

    with ExitStack() as handles:
        found = []
        for pid in psutil.pids():
            try:
                if not is_one(pid):
                    continue
                handle = os.pidfd_open(pid)
                handles.callback(os.close, handle)
                # Until it was held, its number could become another's.
                is_marked = is_one(pid)
                if is_marked and pid not in _OWNED and not _has_ended(handle):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    found.append(handle)
            except OSError:
                continue  # gone, or of another user
        wait_for_ends(found)
    return bool(found)


def _environment(pid: int) -> bytes:
    """Return the environment of a process; that of each is read when a command ends.

    Raises:
        OSError: If it has ended, or is another user's.
    """
    fd = os.open(f"/proc/{pid}/environ", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.read(fd, _ENVIRONMENT_BYTES)
        while part := os.read(fd, _ENVIRONMENT_BYTES):
            found += part
    finally:
        os.close(fd)
    return found


def wait_for_ends(handles: Iterable[int]) -> None:
    """Wait until killed processes, given by pidfds, ended, not until their parents notice."""
    deadline = time.monotonic() + _KILL_WAIT_S
    for handle in handles:
        _has_ended(handle, max(deadline - time.monotonic(), 0.0))


def _has_ended(handle: int, within_s: float = 0.0) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(within_s * 1000))
