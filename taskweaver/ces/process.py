"""One kernel process: started, watched, interrupted, and ended with all it started.

The kernel asks the system to be killed when the thread that started it ends, so kernels are
started from the launcher thread of their manager, which lives as long as they may. Children of
a kernel that made sessions of their own are found by the mark in their environment when the
kernel is stopped or found dead. When this process itself is killed, such children survive.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from taskweaver.ces.environment import kernel_environment, python_command
from taskweaver.ces.limits import KernelLimits
from taskweaver.utils.ids import create_id

_KILL_WAIT_S = 5.0
_FOLDER = "tw-"
"""Private folders are called this, the owner's process id, and something random."""


class KernelProcess:
    """A running kernel process and its private folder of sockets.

    Attributes:
        pid: Process id.
        connection: Addresses and key, as in a Jupyter connection file.
        log_path: Where the process's own output goes: crashes, messages of native libraries.
    """

    def __init__(self, cwd: Path, log_path: Path, limits: KernelLimits) -> None:
        """Start a kernel; it is not ready yet.

        Raises:
            OSError: If the process cannot be started.
        """
        self.id = create_id("kernel")
        self.log_path = log_path
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
        try:
            file, self.connection = _write_connection(self._folder)
            log_path.parent.mkdir(parents=True, exist_ok=True)
            with log_path.open("ab") as log:
                self._process = subprocess.Popen(
                    python_command(*_arguments(file, limits)),
                    cwd=cwd,
                    env=kernel_environment(self.id),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self.pid = self._process.pid
        # Readable when the process ends, so that waiting for a reply also notices a death.
        self.death_fd = os.pidfd_open(self.pid)

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def exit_text(self) -> str:
        """Say how the process ended."""
        code = self._process.poll()
        if code is None:
            return "it still runs"
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exit status {code}"

    def interrupt(self) -> None:
        """Send the kernel a SIGINT."""
        if self.is_alive:
            os.kill(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def end(self, grace_s: float) -> None:
        """Wait for the process to end by itself, then kill it and everything it started."""
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_KILL_WAIT_S)
        finally:
            os.close(self.death_fd)
            _kill_marked(self.id)
            shutil.rmtree(self._folder, ignore_errors=True)


def sweep_folders() -> None:
    """Remove the private folders of owners that were killed before they could."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*-*"):
        owner = folder.name.removeprefix(_FOLDER).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)  # another user's stays


def _arguments(file: Path, limits: KernelLimits) -> Sequence[str]:
    numbers = (os.getpid(), limits.memory_limit_bytes, limits.output_limit_bytes)
    return [str(file), *map(str, numbers)]


def _write_connection(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Choose addresses: ipc sockets in the private folder, TCP where the system has none."""
    from jupyter_client.connect import write_connection_file

    place: dict[str, Any] = {"ip": "127.0.0.1"}
    if hasattr(os, "fork"):
        place = {"transport": "ipc", "ip": str(folder / "k")}
    key = secrets.token_hex(32).encode()
    name, connection = write_connection_file(str(folder / "c.json"), key=key, **place)
    return Path(name), dict(connection)


def _kill_marked(kernel_id: str) -> None:
    """Kill every process whose environment carries the kernel's mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TASKWEAVER_KERNEL_ID") == kernel_id:
                process.kill()
                found.append(process)
        except (psutil.Error, OSError):
            continue  # gone, or somebody else's
    psutil.wait_procs(found, timeout=_KILL_WAIT_S)
