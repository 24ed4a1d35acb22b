"""Templates, from the owner's side: met at birth, asked for kernels, closed.

A template of a sandbox joins its anchor: a sandbox of bubblewrap in which only ``cat`` runs. That
program returns a byte, which proves that bubblewrap has finished, and ends when its owner does:
then its input is closed.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from taskweaver.ces.claims import from_json
from taskweaver.ces.environment import kernel_environment
from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.inkernel.process import ForkRequest, readable
from taskweaver.ces.inkernel.sandbox.entry import Entry
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process import footprint
from taskweaver.ces.process.handles import ProcessHandle, descends, peer_of
from taskweaver.ces.process.homes import Home, Homes
from taskweaver.ces.process.process import KernelHome, KernelProcess, launcher_command, start

IsWanted = Callable[[], bool]
"""Whether a process in the making is still wanted."""
PROGRAM = ["/bin/cat"]
_NAMESPACE_FLAGS = {
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "mnt": 0x00020000,
}
"""Kinds of namespaces, and their flags of ``setns(2)``."""
_LINE_BYTES = 1 << 16
_SOCKET_FILE = "socket"
_MOST_HANDLES = 2
_END_WAIT_S = 5.0
FORK_WAIT_S = 10.0
"""Longest wait for a forked process: code in a sandbox can stop the process that is to fork it."""
_TOLD_WAIT_S = 1.0
_MOST_CODES = 1000
_SLICE_S = 0.1


class Anchor:
    """A running sandbox, still empty. Close the anchor.

    Attributes:
        process: The process of bubblewrap.
        death_fd: Readable when that process has ended.
        handle: Pidfd of the anchor inside.
        namespaces: Flags of ``setns(2)`` for the namespaces that it does not share with this
            process.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], timeout_s: float, is_wanted: IsWanted
    ) -> None:
        """Take charge of a process of bubblewrap that starts `PROGRAM`.

        Its input and output are pipes without buffers.

        Raises:
            ForkRefused: If it does not come up.
        """
        self.process = process
        self._input: Any = process.stdin
        self._output: Any = process.stdout
        self.death_fd = os.pidfd_open(self.process.pid)
        self.handle = -1
        try:
            self._wait(timeout_s, is_wanted)
            self.handle, self._pid = _anchor_handle(self.process.pid)
            self.namespaces = sum(
                flag
                for kind, flag in _NAMESPACE_FLAGS.items()
                if _namespace_link(self._pid, kind) != _namespace_link("self", kind)
            )
        except BaseException:
            self.close()
            raise

    def _wait(self, timeout_s: float, is_wanted: IsWanted) -> None:
        deadline = time.monotonic() + timeout_s
        try:
            self._input.write(b"\n")
        except OSError as error:
            raise ForkRefused(f"the sandbox has ended: {error}") from error
        while not readable([self._output], min(_SLICE_S, timeout_s)):
            if not is_wanted() or time.monotonic() > deadline:
                raise ForkRefused(f"the sandbox did not come up within {timeout_s:g} s")
        if not self._output.read(1):
            raise ForkRefused("the sandbox has ended")

    def path(self, path: Path) -> str:
        """Return another path of a file that is in the sandbox: on the mounts of the sandbox."""
        return f"/proc/{self._pid}/root{path}"

    def close(self) -> None:
        """End the sandbox. Safe to call again."""
        if self._input.closed:
            return
        self.process.kill()
        self.process.wait()
        self._input.close()
        self._output.close()
        os.close(self.death_fd)
        if self.handle >= 0:
            os.close(self.handle)


def _anchor_handle(pid: int) -> tuple[int, int]:
    """Return handle and process id of the anchor.

    `pid` is that of bubblewrap. Its child is the first process inside, whose child is the anchor.

    Raises:
        ForkRefused: If there is none.
    """
    found = _anchor_of(pid)
    try:
        handle = os.pidfd_open(found)
    except OSError as error:
        raise ForkRefused(f"the sandbox has ended: {error}") from error
    try:
        is_held = _anchor_of(pid) == found  # until it was held, its number could become another's
    except ForkRefused:
        is_held = False
    if not is_held:
        os.close(handle)
        raise ForkRefused("the sandbox has ended")
    return handle, found


def _anchor_of(pid: int) -> int:
    for _ in range(2):
        try:
            (pid,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except (OSError, ValueError) as error:
            raise ForkRefused(f"the anchor of the sandbox is not found: {error}") from error
    return pid


def _namespace_link(pid: int | str, kind: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")  # noqa: PTH115 - a text is wanted
    except OSError as error:
        raise ForkRefused(f"the namespaces of the sandbox cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class Handshake:
    """A process that has announced itself.

    Attributes:
        handle: The process.
        inner_pid: Its process id as its parent knows it.
        connection: Its connection; the process ends when it is closed.
    """

    handle: ProcessHandle
    inner_pid: int
    connection: socket.socket


class Rendezvous:
    """A socket at which one process is expected, used as a context manager.

    Attributes:
        path: Address of the socket.
        secret: Proof of a forked process, which alone received it. Without namespaces, code of
            another session may find the address.
    """

    def __init__(self, home: Home) -> None:
        """Listen in a private folder, and publish the folder."""
        self.path = home.path / _SOCKET_FILE
        self.secret = secrets.token_hex(16)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(str(home.draft / _SOCKET_FILE))
            self._socket.listen(1)
            home.publish()
        except BaseException:
            self._socket.close()
            raise

    def arrive(
        self,
        parent_death_fd: int,
        timeout_s: float,
        is_wanted: IsWanted = lambda: True,
        started: int = 0,
    ) -> Handshake:
        """Wait until the process announces itself, and turn strangers away.

        `parent_death_fd` is readable when the one who is to fork it has ended. `started` is the id
        of a process that was started, and starts it or is it: a secret in its command would be
        none. It is 0 for a process that is forked.

        Raises:
            ForkRefused: If there will be none, it does not come in time, or is not wanted any more.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            if time.monotonic() >= deadline:
                raise ForkRefused(f"the new process did not come within {timeout_s:g} s")
            if not is_wanted():
                raise ForkRefused("it is not wanted any more")
            waiting = self._socket.fileno()
            ready = readable([waiting, parent_death_fd], min(_SLICE_S, timeout_s))
            if waiting in ready:
                arrival = self._meet(timeout_s, started)
                if arrival is not None:
                    return arrival
            elif ready:
                raise ForkRefused("the process to fork has ended")

    def arrive_started(
        self, process: subprocess.Popen[bytes], timeout_s: float, is_wanted: IsWanted
    ) -> Handshake:
        """Wait until a started process or a child announces itself (see `arrive`)."""
        death_fd = os.pidfd_open(process.pid)
        try:
            return self.arrive(death_fd, timeout_s, is_wanted, process.pid)
        finally:
            os.close(death_fd)

    def _meet(self, timeout_s: float, started: int) -> Handshake | None:
        """Return the process that has come, or None for a stranger."""
        connection, _ = self._socket.accept()
        with ExitStack() as stack:
            stack.callback(connection.close)
            if started and not descends(peer_of(connection), started):
                return None
            handle, told = _introduction(connection, timeout_s)
            stack.callback(handle.close)
            if not started and told.get("secret") != self.secret:
                return None
            if not isinstance(told.get("pid"), int):
                problem = told.get("error", "the new process says nothing of itself")
                raise ForkRefused(str(problem))
            stack.pop_all()
            return Handshake(handle, told["pid"], connection)

    def __enter__(self) -> Rendezvous:
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()


def _introduction(
    connection: socket.socket, timeout_s: float
) -> tuple[ProcessHandle, dict[str, Any]]:
    """Return the sender's handle and message. Code in a sandbox may send anything."""
    connection.settimeout(timeout_s)
    try:
        data, handles, _, _ = socket.recv_fds(
            connection, _LINE_BYTES, _MOST_HANDLES, socket.MSG_CMSG_CLOEXEC
        )
    except OSError as error:
        raise ForkRefused(f"the new process cannot be heard: {error}") from error
    connection.settimeout(None)
    if not handles:
        raise ForkRefused("the new process ended at once")
    pid = peer_of(connection)
    handle, *files = handles
    # With a handle of another process, this one would be made to kill it.
    facts = Path(f"/proc/self/fdinfo/{handle}").read_text("ascii")
    if f"Pid:\t{pid}\n" not in facts:
        for number in handles:
            os.close(number)
        if "Pid:\t-1\n" in facts:
            raise ForkRefused(str(from_json(data).get("error", "the new process ended at once")))
        raise ForkRefused("the new process gave a handle that is not its own")
    for file in files:
        footprint.keep(pid, file)
    return ProcessHandle(pid, handle), from_json(data)


def require_running(process: ProcessHandle | KernelProcess) -> bool:
    """Return True while a process that is to fork is not held by a signal or a tracer.

    Raises:
        ForkRefused: If it is held: it does not fork before it is let go.
    """
    if process.is_stopped:
        raise ForkRefused("the process to fork was stopped, by a signal or a debugger")
    return True


class Template:
    """A sleeping process that forks kernels (see `inkernel.template`). Close the template.

    Attributes:
        pid: Process id.
    """

    def __init__(
        self,
        arrival: Handshake,
        start_timeout_s: float,
        started: subprocess.Popen[bytes] | None = None,
        homes: Homes | None = None,
    ) -> None:
        self.pid = arrival.handle.pid
        self._process = arrival.handle
        self._connection = arrival.connection
        self._start_timeout_s = start_timeout_s
        self._started = started
        self._homes = homes
        self._lock = threading.Lock()
        self._unread = b""
        self._codes: dict[int, int] = {}
        self._is_closed = False

    def spawn(self, cwd: Path, log_path: Path) -> KernelProcess:
        """Fork a kernel that is not ready yet.

        Raises:
            ForkRefused: If that cannot be done.
        """
        home = KernelHome(self._homes)
        child_paths = (str(log_path), home.id, str(home.file), str(cwd))
        try:
            with self._lock, Rendezvous(home) as expected:
                self._ask(asdict(ForkRequest(str(expected.path), expected.secret, *child_paths)))
                timeout_s = min(self._start_timeout_s, FORK_WAIT_S)
                runs = partial(require_running, self._process)
                arrival = expected.arrive(self._process.death_fd, timeout_s, runs)
                self._codes.pop(arrival.inner_pid, None)  # of an earlier one with this number
        except BaseException:
            home.remove()
            raise
        code = partial(self._exit_code, arrival.inner_pid)
        return KernelProcess(home, log_path, arrival.handle, code, arrival.connection)

    def enter(
        self,
        entry: Entry,
        anchor: Anchor | None,
        expected: Rendezvous,
        is_wanted: IsWanted,
    ) -> Handshake:
        """Fork a template that enters a sandbox. Several may be on the way at a time.

        `anchor` is None for Landlock.

        Raises:
            ForkRefused: If that cannot be done.
        """
        handles = [] if anchor is None else [anchor.handle]
        with self._lock:
            self._ask({"enter": asdict(entry)}, handles)
            own = os.dup(self._process.death_fd)
        try:
            with select.epoll() as deaths:
                for fd in [own] if anchor is None else [own, anchor.death_fd]:
                    deaths.register(fd, select.EPOLLIN)
                return expected.arrive(
                    deaths.fileno(),
                    self._start_timeout_s,
                    lambda: is_wanted() and require_running(self._process),
                )
        finally:
            os.close(own)

    def _ask(self, request: Mapping[str, Any], handles: list[int] | None = None) -> None:
        if self._is_closed or self._process.has_ended():
            raise ForkRefused("the process it would start from has ended")
        try:
            line = json.dumps(request).encode() + b"\n"
            sent = socket.send_fds(self._connection, [line], handles or [])
            self._connection.sendall(line[sent:])
        except OSError as error:
            raise ForkRefused(f"the process it would start from is gone: {error}") from error

    def _exit_code(self, inner_pid: int) -> int | None:
        """Return a kernel's exit code, told by the template."""
        deadline = time.monotonic() + _TOLD_WAIT_S
        with self._lock:
            while inner_pid not in self._codes and not self._is_closed:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not readable([self._connection], left_s):
                    break
                data = self._connection.recv(_LINE_BYTES)
                if not data:
                    break
                *lines, rest = (self._unread + data).split(b"\n")
                self._unread = rest[-_LINE_BYTES:]
                for told in map(from_json, lines):
                    if isinstance(told.get("code"), int):
                        self._codes[told.get("pid", 0)] = told["code"]
                while len(self._codes) > _MOST_CODES:  # the oldest were asked for long ago
                    del self._codes[next(iter(self._codes))]
            return self._codes.get(inner_pid)

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self._is_closed or self._process.has_ended()

    def close(self) -> None:
        """End the process. Forked kernels live on."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._connection.close()
            # Not waited for until it notices: something in its sandbox may have stopped it.
            self._process.send(signal.SIGKILL)
            self._process.has_ended(_END_WAIT_S)
            if self._started is None:
                self._process.reap()
            self._process.close()
            if self._started is not None:
                self._started.wait()


def warm_template(
    limits: KernelLimits,
    log_path: Path,
    is_wanted: IsWanted = lambda: True,
    *,
    executable: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Template:
    """Start a template with the usual libraries.

    Its `environment` is beside that of every kernel; `executable` is another path of the
    interpreter.

    Raises:
        ForkRefused: If it does not come up.
        OSError: If the process cannot be started.
    """
    with KernelHome() as home, Rendezvous(home) as expected:
        command = launcher_command("warm", expected.path, limits)
        own = kernel_environment(home.id) | dict(environment or {})
        cwd = log_path.parent
        process = start(command, own, cwd=cwd, log_path=log_path, executable=executable)
        try:
            arrival = expected.arrive_started(process, limits.start_timeout_s, is_wanted)
        except BaseException:
            process.kill()
            process.wait()
            raise
    return Template(arrival, limits.start_timeout_s, process)
