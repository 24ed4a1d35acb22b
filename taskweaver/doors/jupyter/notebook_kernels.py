"""Kernels of notebooks: started from a warm process, in the sandbox of the nearest project."""

from __future__ import annotations

import atexit
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.errors import ForkRefused, KernelStartFailed
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.kernel.paths import connection_file
from taskweaver.ces.process.homes import private_folder, remove_folder
from taskweaver.trust.answers import granted_digests
from taskweaver.utils.app_utils import CONFIG_FILE, own_folders_above


@dataclass(slots=True)
class _Family:
    """A kernel and its forks: they share a sandbox, which ends with the last of them."""

    app: TaskWeaverApp
    folder: Path
    cwd: Path
    kernels: int = 0


@dataclass(frozen=True, slots=True)
class NotebookKernel:
    """A kernel of a notebook that runs.

    Attributes:
        client: The kernel.
        file: Its connection file.
        sandbox: The sandbox it runs in, in a few words.
    """

    client: Kernel
    file: Path
    sandbox: str
    family: _Family


class NotebookKernels:
    """Owner of the kernels of the notebooks of a program; for any thread. Close it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._apps: dict[Path, TaskWeaverApp] = {}
        self._kernels: dict[str, NotebookKernel] = {}

    def start(self, kernel_id: str, cwd: Path, fork_of: str = "") -> NotebookKernel:
        """Start a kernel, and wait until it answers.

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
        kernel = NotebookKernel(client, file, family.app.sandbox, family)
        with self._lock:
            self._kernels[kernel_id] = kernel
        return kernel

    def stop(self, kernel_id: str) -> None:
        """End a kernel and everything it started; an unknown id is ignored."""
        with self._lock:
            kernel = self._kernels.pop(kernel_id, None)
        if kernel is not None:
            kernel.client.stop()
            self._leave(kernel.family)

    def close(self) -> None:
        """End all kernels and the warm processes; later kernels start new ones."""
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
            client = manager.fork_session_client(state, kernel_id, session_dir=folder, cwd=cwd)
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
