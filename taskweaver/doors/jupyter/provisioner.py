"""Kernels of notebooks, from a warm process in the sandbox of the nearest project.

`jupyter_client` finds the provisioner by an entry point. A kernel starts with all the data of
another one of the same program where it is asked for by ``start_kernel(fork_of=KERNEL_ID)``.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.errors import ForkRefused, KernelStartFailed
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.kernel.running import connection_file
from taskweaver.ces.process.homes import private_folder, remove_folder
from taskweaver.ces.process.process import KernelProcess
from taskweaver.trust.answers import granted_digests
from taskweaver.utils.app_utils import CONFIG_FILE, own_folders_above


@dataclass(slots=True)
class _Family:
    """A kernel with the forks in the same sandbox, which ends with the last kernel."""

    app: TaskWeaverApp
    folder: Path
    cwd: Path
    kernels: int = 0


class NotebookKernel(NamedTuple):
    """A kernel of a notebook that runs.

    Attributes:
        client: The kernel.
        file: Its connection file.
        family: The kernel and its forks.
    """

    client: Kernel
    file: Path
    family: _Family


class NotebookKernels:
    """Owner of the kernels of a program's notebooks, for any thread. Needs `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._apps: dict[Path, TaskWeaverApp] = {}
        self._kernels: dict[str, NotebookKernel] = {}

    def start(self, kernel_id: str, cwd: Path, fork_of: str = "") -> NotebookKernel:
        """Start a kernel, and wait until the kernel answers.

        Args:
            kernel_id: Its id.
            cwd: Folder of its notebook, which its code may write.
            fork_of: Id of the kernel whose variables it starts with; empty for none. The folder is
                that kernel's then.

        Raises:
            ForkRefused: If that kernel does not run, or cannot be forked; says why.
            KernelError: If the kernel cannot be started.
            ConfigError: If the project's configuration cannot be read.
        """
        with self._lock:
            parent = self._kernels.get(fork_of) if fork_of else None
            if fork_of and parent is None:
                raise ForkRefused(f"no kernel {fork_of} of this program runs")
            family = parent.family if parent else self._new_family(cwd.resolve())
            family.kernels += 1
        try:
            client = _started(kernel_id, family, parent)
        except BaseException:
            self._leave(family)
            raise
        file = connection_file(family.folder, kernel_id)
        kernel = NotebookKernel(client, file, family)
        with self._lock:
            self._kernels[kernel_id] = kernel
        return kernel

    def stop(self, kernel_id: str) -> None:
        """End a kernel with all processes below. An unknown id is ignored."""
        with self._lock:
            kernel = self._kernels.pop(kernel_id, None)
        if kernel is not None:
            kernel.client.stop()
            self._leave(kernel.family)

    def close(self) -> None:
        """End all kernels and the warm processes. Later kernels start new processes."""
        for kernel_id in list(self._kernels):
            self.stop(kernel_id)
        with self._lock:
            apps, self._apps = self._apps, {}
        for app in apps.values():
            app.stop()

    def _new_family(self, cwd: Path) -> _Family:
        above = own_folders_above(cwd)
        project = next((place for place in above if (place / CONFIG_FILE).is_file()), cwd)
        app = self._apps.get(project)
        if app is None:
            # Nobody can be asked here: only what the user has allowed before is on.
            app = TaskWeaverApp(project, trust=granted_digests(project))
            self._apps[project] = app
            app.kernels.initialize()
        return _Family(app, private_folder(), cwd)

    def _leave(self, family: _Family) -> None:
        with self._lock:
            family.kernels -= 1
            is_last = not family.kernels
        if is_last:
            remove_folder(family.folder)


def _started(kernel_id: str, family: _Family, parent: NotebookKernel | None) -> Kernel:
    manager, folder, cwd = family.app.kernels, family.folder, family.cwd
    if parent is None:
        client = manager.get_session_client(kernel_id, session_dir=folder, cwd=cwd)
    else:
        state = parent.client.snapshot()
        try:
            client = state.fork(kernel_id, folder, cwd)
        finally:
            state.close()
    if not isinstance(client, Kernel):
        client.stop()
        problem = "Kernels of this project run on another machine (execution.server)."
        raise KernelStartFailed(problem, "Notebooks need a kernel of this one.")
    try:
        client.execute_code("start", "")
    except BaseException:
        client.stop()
        raise
    return client


NOTEBOOK_KERNELS = NotebookKernels()
"""Those of this program: a Jupyter server has one provisioner for each kernel."""

_OWNER = os.getpid()


@atexit.register
def _close() -> None:
    if os.getpid() == _OWNER:
        NOTEBOOK_KERNELS.close()


_DIED = 1


class TaskWeaverProvisioner(KernelProvisionerBase):
    """Starts, forks and ends the kernel of a notebook."""

    _kernel: NotebookKernel | None = None
    _fork_of = ""
    _has_launched = False

    @property
    def has_process(self) -> bool:
        """Whether there is a process."""
        return self._kernel is not None

    @property
    def _process(self) -> KernelProcess | None:
        return None if self._kernel is None else self._kernel.client.process

    async def poll(self) -> int | None:
        """Return an exit status, or None while the kernel runs."""
        process = self._process
        return None if process is not None and process.is_alive else _DIED

    async def wait(self) -> int | None:
        """Wait for the end of the process."""
        process = self._process
        if process is not None and process.is_alive:
            loop = asyncio.get_running_loop()
            ended = asyncio.Event()
            loop.add_reader(process.death_fd, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(process.death_fd)
        await self._release()
        return 0

    async def send_signal(self, signum: int) -> None:
        """Send a signal: an interrupt interrupts the kernel, any other number but 0 ends it."""
        process = self._process
        if process is None or signum == 0:
            return
        if signum == signal.SIGINT:
            process.interrupt()
        else:
            process.kill()

    async def kill(self, restart: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - the base's
        """Kill the process."""
        await self.send_signal(signal.SIGKILL)

    terminate = kill

    async def cleanup(self, restart: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """Give back what the kernel used."""
        await self._release()

    async def _release(self) -> None:
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            await asyncio.to_thread(NOTEBOOK_KERNELS.stop, str(self.kernel_id))

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Take the kernel to fork. A restart starts a fresh one."""
        self._fork_of = kwargs.pop("fork_of", "") if not self._has_launched else ""
        kwargs.pop("extra_arguments", None)
        prepared: dict[str, Any] = await super().pre_launch(cmd=[], **kwargs)
        return prepared

    async def launch_kernel(
        self,
        cmd: list[str],  # noqa: ARG002 - the base's signature
        **kwargs: Any,
    ) -> KernelConnectionInfo:
        """Start or fork the kernel, and return the connection."""
        cwd, self._has_launched = Path(kwargs.get("cwd") or Path.cwd()), True
        id_, start = str(self.kernel_id), NOTEBOOK_KERNELS.start
        self._kernel = kernel = await asyncio.to_thread(start, id_, cwd, self._fork_of)
        facts = json.loads(kernel.file.read_text("utf-8"))
        facts["key"] = facts["key"].encode()
        self.connection_info = facts
        return self.connection_info
