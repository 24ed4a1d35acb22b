"""A session's kernel as its users see it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from taskweaver.ces.bounds.bound import ResourceBound
from taskweaver.ces.common import (
    ExecutionResult,
    OutputHandler,
    PluginCode,
    PluginTestResult,
)
from taskweaver.ces.errors import PluginLoadFailed
from taskweaver.ces.hostcalls import HostFunctions
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.kernel.state_writing import StateWriter
from taskweaver.ces.process.footprint import Footprint
from taskweaver.ces.state.restorable import Origin
from taskweaver.ces.template.snapshot import KernelSnapshot
from taskweaver.utils.safe_fs import Folder, is_plain_name


class KernelClient:
    """One session's kernel, as a `Client`."""

    def __init__(self, kernel: Kernel, cwd: Path, on_stop: Callable[[KernelClient], None]) -> None:
        self._kernel = kernel
        self._cwd = cwd
        self._on_stop: Callable[[KernelClient], None] | None = on_stop
        self._stopping = threading.Lock()

    @property
    def id(self) -> str:
        """Id of the session it was made for."""
        return self._kernel.place.session_id

    @property
    def folder(self) -> Path:
        """Folder of the session."""
        return self._kernel.place.folder

    @property
    def state(self) -> str:
        """State of the kernel, in a word or two."""
        return self._kernel.state

    def start(self) -> None:
        """Start the kernel in the background."""
        self._kernel.start()

    def stop(self) -> None:
        """Stop the kernel and everything it started; safe to call again."""
        self._kernel.stop()
        with self._stopping:
            on_stop, self._on_stop = self._on_stop, None
        if on_stop is not None:
            on_stop(self)

    def load_plugin(self, name: str, code: str, config: Mapping[str, Any] | None = None) -> None:
        """Put a plugin into the kernel's namespace, now and after each restart."""
        problem = self.load_plugins([PluginCode(name, code, config or {})]).get(name)
        if problem:
            raise PluginLoadFailed(f"Plugin {name!r}: {problem}")

    def offer(self, functions: HostFunctions) -> None:
        """Let cells call functions of this process, now and after each restart."""
        self._kernel.offer(functions)

    def load_plugins(
        self, plugins: Iterable[PluginCode], removed: Iterable[str] = ()
    ) -> dict[str, str]:
        """Load plugins in one request, and remove others, now and after each restart."""
        return self._kernel.load_plugins(plugins, removed)

    def overview(self, files: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return a first impression of data files; see `Client`."""
        found = self._kernel.overview(files).get("files")
        return found if isinstance(found, dict) else {}

    def test_plugin(self, name: str) -> list[PluginTestResult]:
        """Run the tests that came with a loaded plugin."""
        return self._kernel.test_plugin(name)

    def update_session_var(self, session_var_dict: Mapping[str, str]) -> None:
        """Set variables plugins read through their context."""
        self._kernel.update_session_vars(session_var_dict)

    def execute_code(
        self, exec_id: str, code: str, on_output: OutputHandler | None = None
    ) -> ExecutionResult:
        """Run a cell; a caller that comes while one runs waits for its turn."""
        return self._kernel.execute(exec_id, code, on_output)

    def operation(self) -> AbstractContextManager[None]:
        """Keep interrupts from now on, for the operations of a block; see `Client`."""
        return self._kernel.operation()

    def interrupt(self) -> None:
        """Interrupt the running cell, or the one that waits for the kernel to start."""
        self._kernel.interrupt()

    def snapshot(self) -> KernelSnapshot:
        """Keep the state of this moment; other kernels can start from it."""
        return self._kernel.snapshot()

    def state_writer(self, skip: Mapping[str, str], limit_bytes: int) -> StateWriter:
        """Return the state of this moment, to be stored."""
        return self._kernel.state_writer(skip, limit_bytes)

    def restore_from(self, origin: Origin) -> None:
        """Start from a stored state before the first cell, now and after each restart."""
        self._kernel.restore_from(origin)

    @property
    def has_state(self) -> bool:
        """True if it runs and has its variables."""
        return self._kernel.has_state

    @property
    def is_forked(self) -> bool:
        """True if it started with the variables of another kernel."""
        return self._kernel.is_forked

    @property
    def footprint(self) -> Footprint:
        """The memory it takes up."""
        return self._kernel.footprint

    @property
    def bounds(self) -> tuple[ResourceBound, ...]:
        """The bounds on the session's resources, and the mechanism that enforces each."""
        return self._kernel.place.guard.bounds

    def left_behind(self) -> str:
        """Say which processes that cells started still run; empty for none."""
        return self._kernel.place.guard.left_behind()

    def upload_file(self, filename: str, content: bytes) -> str:
        """Write a file into the working directory; return its name there."""
        if not is_plain_name(filename):
            raise ValueError(f"{filename!r} is not the name of a file without folders")
        with Folder.at(self._cwd) as folder, folder.replacing(filename) as target:
            target.write(content)
        return filename
