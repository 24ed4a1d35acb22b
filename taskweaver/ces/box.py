"""Sandboxes of sessions: each has a template in it, from which the session's kernels start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from taskweaver.ces.egress import EgressProxy
from taskweaver.ces.environment import (
    bridge_environment,
    bridged,
    kernel_environment,
    python_command,
)
from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process import FOLDER, KernelProcess
from taskweaver.ces.sandbox import SandboxPolicy, bwrap_command, require_bwrap, socket_filter
from taskweaver.ces.template import Expectation, Template
from taskweaver.utils.ids import create_id

_FONT_LISTS = "fontlist-*.json"
_MATPLOTLIB = "/tmp/.matplotlib"
_PROXY = "/run/egress"
WORKING_FOLDERS = ("cwd", "branches")
"""Folders in a session's that its kernels may write; the conversation beside them they may not."""


@dataclass(frozen=True, slots=True)
class BoxPlan:
    """How sandboxes are made.

    Attributes:
        policy: What code in them may reach.
        limits: What kernels may use.
        is_warm: Whether the usual libraries are imported before they are asked for.
    """

    policy: SandboxPolicy
    limits: KernelLimits
    is_warm: bool

    def font_lists(self) -> list[tuple[Path, str]]:
        """Return matplotlib's lists of fonts, made when there are none, and their place inside.

        Without one, matplotlib would look at every font of the machine in each sandbox anew.
        """
        cache = _cache_folder() / "matplotlib"
        if not any(cache.glob(_FONT_LISTS)):
            cache.mkdir(parents=True, exist_ok=True)
            with suppress(subprocess.TimeoutExpired):  # then they are made inside
                subprocess.run(
                    [sys.executable, "-c", "import matplotlib.font_manager"],
                    env={**os.environ, "MPLCONFIGDIR": str(cache)},
                    capture_output=True,
                    timeout=self.limits.start_timeout_s,
                    check=False,
                )
        return [(path, f"{_MATPLOTLIB}/{path.name}") for path in cache.glob(_FONT_LISTS)]


def _cache_folder() -> Path:
    """Return the user's folder for what can be made again (XDG base directories)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "taskweaver"


class Box:
    """A sandbox that runs. Close it: everything in it ends."""

    def __init__(self, plan: BoxPlan, folder: Path, cwd: Path, log_path: Path) -> None:
        """Start it; call this from a thread that lives as long as the box.

        Args:
            plan: How it is made.
            folder: Folder of the session; only its working directories can be written.
            cwd: Working directory of the first kernel.
            log_path: File for what is printed outside of cells.

        Raises:
            SandboxUnavailable: If there can be none here.
            ForkRefused: If its template does not come up.
            ConfigError: If an allowed host is not one.
            OSError: If it cannot be started.
        """
        require_bwrap()
        own = [folder / name for name in WORKING_FOLDERS]
        for path in own:
            path.mkdir(parents=True, exist_ok=True)
        log_path.touch()
        self._homes = Path(tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-"))
        self._proxy: EgressProxy | None = None
        writable = dict.fromkeys([*own, cwd, log_path, self._homes])
        environment = kernel_environment(create_id("box"))
        inside = {"HOME": str(cwd), "TMPDIR": "/tmp", "MPLCONFIGDIR": _MATPLOTLIB}
        kind = "warm" if plan.is_warm else "template"
        most = plan.limits
        limits = (0, most.memory_limit_bytes, most.output_limit_bytes)
        inner = (most.process_limit, most.file_limit_bytes)
        try:
            with Expectation(self._homes) as expected, log_path.open("ab") as log:
                command = python_command(kind, str(expected.path), *map(str, limits + inner))
                shown = plan.font_lists()
                if plan.policy.allowed_hosts and not plan.policy.has_network:
                    self._proxy = EgressProxy(plan.policy.allowed_hosts)
                    shown.append((self._proxy.path, _PROXY))
                    command = bridged(command, _PROXY)
                    inside |= bridge_environment()
                environment |= inside
                self._process = _start(plan, writable, shown, command, environment, log)
                self._template = self._meet(expected, plan.limits.start_timeout_s)
        except BaseException:
            self._release()
            raise

    def _meet(self, expected: Expectation, timeout_s: float) -> Template:
        death_fd = os.pidfd_open(self._process.pid)
        try:
            return Template(expected.arrive(death_fd, timeout_s), timeout_s, homes=self._homes)
        except BaseException:
            self._kill()
            raise
        finally:
            os.close(death_fd)

    def start(self, cwd: Path, log_path: Path) -> KernelProcess:
        """Start a kernel in it; it is not ready yet.

        Raises:
            ForkRefused: If the box has ended.
        """
        return self._template.spawn(cwd, log_path)

    def close(self) -> None:
        """End everything in it; safe to call again."""
        self._template.close()
        self._kill()
        self._release()

    def _release(self) -> None:
        if self._proxy is not None:
            self._proxy.close()
        shutil.rmtree(self._homes, ignore_errors=True)

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _start(
    plan: BoxPlan,
    writable: Iterable[Path],
    copies: Iterable[tuple[Path, str]],
    command: list[str],
    environment: dict[str, str],
    log: IO[bytes],
) -> subprocess.Popen[bytes]:
    file = socket_filter()
    try:
        return subprocess.Popen(
            [*bwrap_command(plan.policy, writable, file, copies), *command],
            cwd=environment["HOME"],
            env=environment,
            pass_fds=[file],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(file)


class Boxes:
    """The sandboxes of an application, by the folder of the session."""

    def __init__(self, plan: BoxPlan) -> None:
        self._plan = plan
        self._boxes: dict[Path, Box] = {}

    def start(self, folder: Path, cwd: Path, log_path: Path) -> KernelProcess:
        """Start a kernel in the session's box; a box that has ended is replaced.

        Raises:
            SandboxUnavailable: If there can be none here.
            OSError: If it cannot be started.
        """
        box = self._boxes.get(folder)
        if box is not None:
            try:
                return box.start(cwd, log_path)
            except ForkRefused:
                self.close(folder)
        self._boxes[folder] = Box(self._plan, folder, cwd, log_path)
        return self._boxes[folder].start(cwd, log_path)

    def close(self, folder: Path) -> None:
        """End a session's box, if there is one."""
        box = self._boxes.pop(folder, None)
        if box is not None:
            box.close()

    def close_all(self) -> None:
        """End every box."""
        for folder in list(self._boxes):
            self.close(folder)
