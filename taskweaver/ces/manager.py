"""Owner of all kernels: hands out one client per session and ends what is left."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.ces.box import Boxes, BoxPlan
from taskweaver.ces.common import (
    ExecutionResult,
    Manager,
    OutputHandler,
    PluginCode,
    PluginTestResult,
    Snapshot,
)
from taskweaver.ces.errors import PluginLoadFailed
from taskweaver.ces.footprint import Footprint
from taskweaver.ces.hostcalls import HostFunctions
from taskweaver.ces.kernel import Kernel
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.place import KernelPlace
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.process import KernelProcess, private_folder, start_kernel, sweep_folders
from taskweaver.ces.snapshot import KernelSnapshot
from taskweaver.ces.state.restorable import Origin
from taskweaver.ces.state.writing import StateWriter
from taskweaver.ces.zygote import Zygote
from taskweaver.config.known_keys import BY_NAME
from taskweaver.utils.hostile import is_plain_name, replacing
from taskweaver.utils.platform import HAS_LIVE_FORKS

__all__ = ["KernelClient", "KernelManager", "code_execution_service_factory", "default_limits"]


class KernelClient:
    """One session's kernel, as a `Client`."""

    def __init__(self, kernel: Kernel, cwd: Path, on_stop: Callable[[KernelClient], None]) -> None:
        self._kernel = kernel
        self._cwd = cwd.resolve()
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
        """What the kernel is doing, in a word or two."""
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
        """Whether it runs and has its variables."""
        return self._kernel.has_state

    @property
    def is_forked(self) -> bool:
        """Whether it started with the variables of another kernel."""
        return self._kernel.is_forked

    @property
    def footprint(self) -> Footprint:
        """The memory it takes up."""
        return self._kernel.footprint

    def upload_file(self, filename: str, content: bytes) -> str:
        """Write a file into the working directory; return its name there."""
        if not is_plain_name(filename):
            raise ValueError(f"{filename!r} is not the name of a file without folders")
        with replacing(self._cwd, filename) as target:
            target.write(content)
        return filename


@dataclass(slots=True)
class _FolderUse:
    """Use of a session's folder by kernels that were not stopped.

    Attributes:
        calls: Private folder of the sockets of their host functions.
        clients: Number of their clients.
    """

    calls: Path
    clients: int = 0


class KernelManager:
    """Owner of the kernels of an application, and of the thread that starts them."""

    def __init__(
        self,
        env_dir: Path,
        limits: KernelLimits,
        *,
        is_warm: bool,
        sandbox: SandboxPolicy | None = None,
    ) -> None:
        self._env_dir = env_dir
        self._limits = limits
        self._boxes: Boxes | None = None
        if sandbox is not None:
            self._boxes = Boxes(BoxPlan(sandbox, limits, is_warm))
        self._has_zygote = is_warm and sandbox is None and HAS_LIVE_FORKS
        self._zygote: Zygote | None = None
        self._launcher: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()  # for the two below
        self._clients: dict[str, KernelClient] = {}
        self._uses: dict[Path, _FolderUse] = {}

    def initialize(self) -> None:
        """Start the launcher thread; safe to call again."""
        self._launching()

    def _launching(self) -> ThreadPoolExecutor:
        if self._launcher is None:
            self._launcher = ThreadPoolExecutor(1, thread_name_prefix="kernel-launcher")
            if self._has_zygote:
                self._zygote = Zygote(self._limits, self._env_dir / "warm.log")
                self._launcher.submit(self._zygote.prepare)
            self._launcher.submit(sweep_folders)
        return self._launcher

    def _launch(self, place: KernelPlace, is_wanted: Callable[[], bool]) -> Future[KernelProcess]:
        launcher = self._launching()
        if self._boxes is not None:
            return launcher.submit(self._boxes.start, place, is_wanted)
        if self._zygote is not None:
            return launcher.submit(self._zygote.start, place.cwd, place.log_path)
        return launcher.submit(start_kernel, place.cwd, place.log_path, self._limits)

    def clean_up(self) -> None:
        """Stop every kernel, then the launcher thread."""
        with self._lock:
            clients = list(self._clients.values())
        for client in clients:
            client.stop()
        if self._boxes is not None:
            self._boxes.close_all()
        launcher, self._launcher = self._launcher, None
        if launcher is not None:
            if self._zygote is not None:
                self._zygote.give_up()
                launcher.submit(self._zygote.close)
            launcher.shutdown(wait=True)

    def get_session_client(
        self,
        session_id: str,
        env_id: str | None = None,
        session_dir: Path | str | None = None,
        cwd: Path | str | None = None,
        *,
        devices: tuple[Path, ...] = (),
    ) -> KernelClient:
        """Return the client of a session, made on first call.

        Args:
            session_id: Id of the session.
            env_id: Id of the environment; None takes ``local``.
            session_dir: Folder of the session; None takes one below the environment's.
            cwd: Working directory of the kernel; None takes ``cwd`` below the session's.
            devices: Devices that code in the session's sandbox may use; those of the client that
                is the first to start count.
        """
        kept = self._clients.get(session_id)
        if kept is not None and kept.state != "stopped":
            return kept
        return self._add(session_id, env_id, session_dir, cwd, None, devices)

    def fork_session_client(
        self,
        snapshot: Snapshot,
        session_id: str,
        env_id: str | None = None,
        session_dir: Path | str | None = None,
        cwd: Path | str | None = None,
    ) -> KernelClient:
        """Return a client whose kernel has the variables of a snapshot.

        Args:
            snapshot: What `KernelClient.snapshot` gave.
            session_id: Its id; it must be new.
            env_id: As for `get_session_client`.
            session_dir: As for `get_session_client`.
            cwd: As for `get_session_client`.

        Raises:
            ForkRefused: If the snapshot is gone, or there is no room for another process.
            KernelStartFailed: If the forked kernel does not answer.
        """
        assert isinstance(snapshot, KernelSnapshot)
        return self._add(session_id, env_id, session_dir, cwd, snapshot)

    def _add(
        self,
        session_id: str,
        env_id: str | None,
        session_dir: Path | str | None,
        cwd: Path | str | None,
        origin: KernelSnapshot | None,
        devices: tuple[Path, ...] = (),
    ) -> KernelClient:
        folder = Path(session_dir or self._env_dir / "sessions" / session_id)
        where = Path(cwd or folder / "cwd")
        where.mkdir(parents=True, exist_ok=True)
        own = (folder, where, folder / "kernel.log", self._begin_use(folder), devices)
        try:
            place = KernelPlace(env_id or "local", session_id, *own)
            kernel = Kernel(place, self._limits, self._launch, origin)
        except BaseException:
            self._end_use(folder)
            raise
        client = KernelClient(kernel, where, self._release)
        with self._lock:
            self._clients[session_id] = client
        return client

    def _begin_use(self, folder: Path) -> Path:
        """Count a client of a session; return the folder of the session's host calls."""
        with self._lock:
            use = self._uses.get(folder)
            if use is None:
                use = self._uses[folder] = _FolderUse(private_folder())
            use.clients += 1
            return use.calls

    def _release(self, client: KernelClient) -> None:
        """Forget a client that was stopped."""
        with self._lock:
            if self._clients.get(client.id) is client:
                del self._clients[client.id]
        self._end_use(client.folder)

    def _end_use(self, folder: Path) -> None:
        """End the sandbox of a session whose last kernel was stopped."""
        with self._lock:
            use = self._uses[folder]
            use.clients -= 1
            if use.clients:
                return
            del self._uses[folder]
        if self._boxes is not None:
            self._boxes.close(folder)
        shutil.rmtree(use.calls, ignore_errors=True)

    def get_kernel_mode(self) -> str:
        """Return how kernels run."""
        return "local" if self._boxes is None else self._boxes.tier


def default_limits() -> KernelLimits:
    """Return the limits of an application that configures none."""
    rows = {name: BY_NAME[f"execution.{name}"].default for name in _LIMIT_KEYS}
    return KernelLimits(
        start_timeout_s=rows["start_timeout_s"],
        cell_timeout_s=rows["cell_timeout_s"],
        memory_limit_bytes=rows["memory_limit_mb"] << 20,
        output_limit_bytes=rows["output_limit_kb"] << 10,
        artifact_limit_bytes=rows["artifact_limit_mb"] << 20,
    )


_LIMIT_KEYS = (
    "start_timeout_s",
    "cell_timeout_s",
    "memory_limit_mb",
    "output_limit_kb",
    "artifact_limit_mb",
)


def code_execution_service_factory(
    env_dir: Path | str,
    *,
    limits: KernelLimits | None = None,
    is_warm: bool = False,
    sandbox: SandboxPolicy | None = None,
) -> Manager:
    """Return an owner of kernels.

    Args:
        env_dir: Where sessions without a folder of their own keep their files.
        limits: What kernels may use; None takes the defaults of the configuration.
        is_warm: Keep a process with the usual libraries, from which kernels start faster.
        sandbox: Run the kernels of each session in a sandbox; None runs them without.
    """
    chosen = limits or default_limits()
    return KernelManager(Path(env_dir), chosen, is_warm=is_warm, sandbox=sandbox)
