"""One kernel process: watched, interrupted, and ended with all descendants.

A kernel is started by `start_kernel`, or forked by a `Template`. One that is started asks the
system to be killed when the thread that started it ends, so kernels are started from the launcher
thread of their manager, which lives as long as they may. Children of a kernel that made sessions
of their own are found by the mark in their environment when the kernel is stopped or found dead.
When this process itself is killed, these children survive.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from taskweaver.ces.environment import kernel_environment
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process.handles import ProcessHandle, death_fd
from taskweaver.ces.process.homes import Home, Homes
from taskweaver.ces.process.marked import kill_marked
from taskweaver.utils.ids import create_id
from taskweaver.utils.system.platform import signal_name

_KILL_WAIT_S = 5.0
_CONNECTION_FILE = "c.json"


class KernelProcess:
    """A running kernel process and the private folder of sockets.

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
        """True if something holds the process (see `ProcessHandle.is_stopped`)."""
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
        """Wait for the process to end, then kill the process and all descendants."""
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


class KernelHome(Home):
    """The private folder of a kernel, with a connection file, closed to other users.

    Attributes:
        id: Marks the processes started by the one that lives here.
        homes: Place of the folder.
        file: The connection file, once the folder is published.
        connection: Contents of that file.
    """

    def __init__(self, homes: Homes | None = None) -> None:
        """Prepare the folder in `homes`, or in the place for temporary files."""
        self.homes = homes or Homes()
        super().__init__(self.homes)
        self.id = create_id("kernel")
        self.file = self.path / _CONNECTION_FILE
        try:
            self.connection = _write_connection(self)
        except BaseException:
            self.remove()
            raise


def start_kernel(cwd: Path, log_path: Path, limits: KernelLimits) -> KernelProcess:
    """Start a kernel that is not ready yet.

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
    handle = ProcessHandle(process.pid, death_fd(process))
    return KernelProcess(home, log_path, handle, process.poll)


def launcher_command(
    kind: str, place: Path, limits: KernelLimits, owner: int | None = None, processes: int = 0
) -> list[str]:
    """Return the command of a process that ends with its owner, see `inkernel.launcher`.

    `owner` is this process if None, and 0 where a namespace ends the process. `processes` is 0
    where the process sets itself no such limit.
    """
    numbers = (
        os.getpid() if owner is None else owner,
        limits.output_limit_bytes,
        *limits.of_process(processes),
    )
    launcher = [sys.executable, "-m", "taskweaver.ces.inkernel.launcher"]
    return [*launcher, kind, str(place), *map(str, numbers)]


def start(
    command: list[str],
    environment: Mapping[str, str],
    *,
    cwd: Path,
    log_path: Path,
    executable: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in an own session, without input.

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
    """Choose addresses: ipc sockets in the private folder."""
    from jupyter_client.connect import write_connection_file

    file, place = str(home.draft / _CONNECTION_FILE), str(home.path / "k")
    key = secrets.token_hex(32).encode()
    _, connection = write_connection_file(file, ip=place, key=key, transport="ipc")
    return dict(connection)
