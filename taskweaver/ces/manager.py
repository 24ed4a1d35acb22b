"""Owner of all kernels: hands out one client per session and ends those that are left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from taskweaver.ces.bounds.bound import ResourceBound, bounds_of
from taskweaver.ces.bounds.cgroup import sweep_groups
from taskweaver.ces.bounds.guard import SessionGuard
from taskweaver.ces.common import CellTables
from taskweaver.ces.errors import KernelStartFailed
from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.ces.kernel.operations import IdleOutput
from taskweaver.ces.kernel.running import KernelPaths, KernelSnapshot
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.process.homes import private_folder, remove_folder, sweep_folders
from taskweaver.ces.process.marked import sweep_marked
from taskweaver.ces.process.process import KernelProcess, start_kernel
from taskweaver.ces.sandbox.session_sandbox import (
    WORKING_FOLDERS,
    SandboxPlan,
    SessionSandboxes,
    sandbox_template,
)
from taskweaver.ces.template import warm_template
from taskweaver.ces.zygote import Zygote, start_warm
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.system.forks import bind_to_process
from taskweaver.utils.system.platform import HAS_LIVE_FORKS

LOG_FILE = "kernel.log"
_LAUNCHERS = 4
"""Threads that start kernels; the system ends a sandbox with the thread that started it."""


@dataclass(slots=True)
class _FolderUse:
    """Use of a session's folder by kernels that were not stopped.

    `calls` is the private folder of the sockets of their host functions.
    """

    calls: Path
    guard: SessionGuard
    clients: int = 0


class KernelManager:
    """Owner of the kernels of an application, and of the threads that start them.

    Attributes:
        tables: Tables that cells ended with.
        room_of: Returns the bytes that a session's folder may still take; None for no limit.
        owner_of: Returns the user that a session's folder belongs to, "" where one person has all.
    """

    def __init__(
        self,
        env_dir: Path,
        limits: KernelLimits,
        *,
        is_warm: bool,
        sandbox: SandboxPolicy | None = None,
    ) -> None:
        self.tables = CellTables()
        self.room_of: Callable[[Path], int | None] = lambda _folder: None
        self.owner_of: Callable[[Path], str] = lambda _folder: ""
        self._output = IdleOutput()
        self._env_dir = env_dir
        self._limits = limits
        self._plan = None if sandbox is None else SandboxPlan(sandbox, limits, is_warm)
        self._boxes: SessionSandboxes | None = None
        self._is_warm = is_warm and HAS_LIVE_FORKS
        self._zygote: Zygote | None = None
        self._launcher: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()  # for the two below, and the launcher
        self._clients: dict[str, Kernel] = {}
        self._uses: dict[Path, _FolderUse] = {}
        bind_to_process(self)

    def initialize(self) -> None:
        """Start the first launcher thread. Safe to call again."""
        self._launching()

    def _launching(self) -> ThreadPoolExecutor:
        with self._lock:  # messages of several sessions may be the first
            if self._launcher is None:
                self._launcher = ThreadPoolExecutor(
                    _LAUNCHERS, thread_name_prefix="kernel-launcher"
                )
                if self._is_warm:
                    log_path = self._env_dir / "warm.log"
                    make = partial(warm_template, self._limits, log_path)
                    if self._plan is not None:
                        make = partial(sandbox_template, self._plan, log_path)
                    self._zygote = Zygote(make, log_path)
                    self._launcher.submit(self._zygote.template)
                if self._plan is not None:
                    self._boxes = SessionSandboxes(self._plan, self._zygote)
                self._launcher.submit(_sweep)
            return self._launcher

    def _launch(self, place: KernelPaths, is_wanted: Callable[[], bool]) -> Future[KernelProcess]:
        launcher = self._launching()
        if self._boxes is not None:
            return launcher.submit(self._boxes.start, place, is_wanted)
        if self._zygote is not None:
            own = (place.cwd, place.log_path)
            return launcher.submit(start_warm, self._zygote, self._limits, *own)
        return launcher.submit(start_kernel, place.cwd, place.log_path, self._limits)

    def clean_up(self) -> None:
        """Stop every kernel, then the launcher threads."""
        with self._lock:
            clients = list(self._clients.values())
        for client in clients:
            client.stop()
        self._output.close()
        if self._boxes is not None:
            self._boxes.close_all()
        launcher, self._launcher = self._launcher, None
        if launcher is not None:
            if self._zygote is not None:
                self._zygote.give_up()
                try:
                    launcher.submit(self._zygote.close)
                except RuntimeError:  # the program is ending and has ended the threads
                    self._zygote.close()
            launcher.shutdown(wait=True)

    def get_session_client(
        self,
        session_id: str,
        env_id: str | None = None,
        session_dir: Path | str | None = None,
        cwd: Path | str | None = None,
        *,
        devices: tuple[Path, ...] = (),
    ) -> Kernel:
        """Return the client of a session, made on first call.

        Args:
            session_id: Id of the session.
            env_id: Id of the environment; None takes ``local``.
            session_dir: Folder of the session; None takes one below the environment's.
            cwd: Working directory of the kernel; None takes ``cwd`` below the session's.
            devices: Devices that code in the session's sandbox may use; those of the client that
                is the first to start count.

        Raises:
            KernelStartFailed: If there can be no working directory.
        """
        kept = self._clients.get(session_id)
        if kept is not None and kept.state != "stopped":
            return kept
        return self._add(None, session_id, session_dir, cwd, env_id or "local", devices)

    def _add(
        self,
        origin: KernelSnapshot | None,
        session_id: str,
        session_dir: Path | str | None,
        cwd: Path | str | None,
        env_id: str = "local",
        devices: tuple[Path, ...] = (),
    ) -> Kernel:
        folder = Path(session_dir or self._env_dir / "sessions" / session_id)
        try:
            folder, where = _made(folder, Path(cwd) if cwd else None)
        except OSError as error:
            raise KernelStartFailed(f"{cwd or folder} cannot be used: {error.strerror}.") from error
        use = self._begin_use(folder)
        use.guard.add_folder(where)
        own = (folder, where, folder / LOG_FILE, use.calls, use.guard, devices)
        try:
            place = KernelPaths(env_id, session_id, *own, self.tables, self._output)
            kernel = Kernel(place, self._limits, self._launch, self._release, self._add, origin)
        except BaseException:
            self._end_use(folder)
            raise
        bind_to_process(kernel)
        with self._lock:
            self._clients[session_id] = kernel
        return kernel

    def _begin_use(self, folder: Path) -> _FolderUse:
        """Count a client of a session, and return the parts that all clients share."""
        with self._lock:
            use = self._uses.get(folder)
            if use is None:
                use = self._uses[folder] = _FolderUse(private_folder(), self._guard(folder))
            use.clients += 1
            return use

    def _guard(self, folder: Path) -> SessionGuard:
        own = (self._limits, self.get_kernel_mode(), folder / LOG_FILE)
        guard = SessionGuard(*own, lambda: self.room_of(folder), self.owner_of(folder))
        if self._boxes is None:
            guard.new_group()
        for name in WORKING_FOLDERS:
            guard.add_folder(folder / name)
        return guard

    @property
    def bounds(self) -> tuple[ResourceBound, ...]:
        """The bounds on each session, and the mechanisms here."""
        return bounds_of(self._limits, self.get_kernel_mode())

    def _release(self, kernel: Kernel) -> None:
        """Forget a kernel that was stopped."""
        place = kernel.place
        with self._lock:
            if self._clients.get(place.session_id) is kernel:
                del self._clients[place.session_id]
        self._end_use(place.folder)

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
        remove_folder(use.calls)
        use.guard.close()

    @property
    def start_problem(self) -> str:
        """Reason that kernels start cold although a warm process is enabled, or ""."""
        return "" if self._zygote is None else self._zygote.problem

    def get_kernel_mode(self) -> str:
        """Return how kernels run."""
        return "local" if self._plan is None else self._plan.policy.tier


def _sweep() -> None:
    """Remove the leftovers of killed applications: processes first, then groups and folders."""
    sweep_marked()
    sweep_groups()
    sweep_folders()


def _made(folder: Path, cwd: Path | None) -> tuple[Path, Path]:
    """Make the folder of a session and a working directory, and return both without links.

    Code can write to the parents of a working directory inside of the session's folder: those are
    made without following a link, and not resolved.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root, where = folder.resolve(), (cwd or folder / "cwd").absolute()
    for start in (root, folder.absolute()):
        if where.is_relative_to(start) and where != start:
            inner = where.relative_to(start)
            with Folder.at(root) as own:
                own.make_folders(inner)
                own.folder(inner).close()  # refuses a link
            return root, root / inner
    where.mkdir(parents=True, exist_ok=True)
    return root, where.resolve()


def code_execution_service_factory(
    env_dir: Path | str,
    *,
    limits: KernelLimits | None = None,
    is_warm: bool = False,
    sandbox: SandboxPolicy | None = None,
) -> KernelManager:
    """Return an owner of kernels.

    Args:
        env_dir: Where sessions without a folder of their own keep their files.
        limits: Limits of kernels; None takes the defaults of the configuration.
        is_warm: Keep a process with the usual libraries, from which kernels start faster.
        sandbox: Run the kernels of each session in a sandbox; None runs them without.
    """
    chosen = limits or KernelLimits.default()
    return KernelManager(Path(env_dir), chosen, is_warm=is_warm, sandbox=sandbox)
