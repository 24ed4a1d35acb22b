"""Sandboxes of sessions: each has a template in it, from which the session's kernels start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import psutil

from taskweaver.ces.cgroup import ControlGroup, counts_by_sandbox
from taskweaver.ces.egress import EgressProxy
from taskweaver.ces.environment import (
    bridge_environment,
    bridged,
    kernel_environment,
    python_command,
)
from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.place import KernelPlace
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.process import KernelProcess, kill_marked, private_folder, wait_for_ends
from taskweaver.ces.sandbox import confined, require
from taskweaver.ces.template import Expectation, Template
from taskweaver.utils.ids import create_id

_FONT_LISTS = "fontlist-*.json"
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

    def font_lists(self) -> list[Path]:
        """Return matplotlib's lists of fonts, made when there are none.

        Without one, matplotlib would look at every font of the machine in each sandbox anew.
        """
        try:
            cache = _cache_folder() / "matplotlib"
            if not any(cache.glob(_FONT_LISTS)):
                cache.mkdir(parents=True, exist_ok=True)
                subprocess.run(
                    [sys.executable, "-c", "import matplotlib.font_manager"],
                    env={**os.environ, "MPLCONFIGDIR": str(cache)},
                    capture_output=True,
                    timeout=self.limits.start_timeout_s,
                    check=False,
                )
            return sorted(cache.glob(_FONT_LISTS))
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            return []  # there is no home folder, or none to write: they are made inside


def _cache_folder() -> Path:
    """Return the user's folder for what can be made again (XDG base directories)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "taskweaver"


class Box:
    """A sandbox that runs. Close it: everything in it ends."""

    def __init__(self, plan: BoxPlan, place: KernelPlace, is_wanted: Callable[[], bool]) -> None:
        """Start it; call this from a thread that lives as long as the box.

        Args:
            plan: How it is made.
            place: Where the first kernel belongs; only working directories can be written.
            is_wanted: Tells whether to wait for its template on.

        Raises:
            SandboxUnavailable: If there can be none here.
            ForkRefused: If its template does not come up.
            ConfigError: If an allowed host is not one.
            OSError: If it cannot be started.
        """
        require(plan.policy.tier)
        folder, cwd, log_path = place.folder, place.cwd, place.log_path
        own = [folder / name for name in WORKING_FOLDERS]
        for path in own:
            path.mkdir(parents=True, exist_ok=True)
        log_path.touch()
        self._mark = create_id("box")
        self._homes = private_folder()
        self._group = place.guard.new_group()
        self._proxy: EgressProxy | None = None
        # What is below the others can be a link that code made there: it must not be followed.
        inner = [] if set(own) & {cwd, *cwd.parents} else [cwd]
        writable = [*own, *inner, log_path, self._homes]
        try:
            if plan.policy.allowed_hosts and not plan.policy.has_network:
                self._proxy = EgressProxy(plan.policy.allowed_hosts)
            with Expectation(self._homes) as expected, log_path.open("ab") as log:
                own_place = (writable, cwd, self._homes, place.calls)
                start = _Start(plan, self._mark, *own_place, self._group, self._proxy)
                self._process = start.run(expected.path, log)
                self._template = self._meet(expected, plan.limits.start_timeout_s, is_wanted)
                place.guard.adopt_family(self._process.pid)
        except BaseException:
            self._release()
            raise

    def _meet(
        self, expected: Expectation, timeout_s: float, is_wanted: Callable[[], bool]
    ) -> Template:
        death_fd = os.pidfd_open(self._process.pid)
        try:
            arrival = expected.arrive(death_fd, timeout_s, is_wanted)
            return Template(arrival, timeout_s, homes=self._homes)
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
        self._group.remove()
        shutil.rmtree(self._homes, ignore_errors=True)

    def _kill(self) -> None:
        """Kill the sandbox, and wait for all that the system ends with it."""
        if self._process.returncode is None:
            with ExitStack() as handles:
                inside = []
                for process in psutil.Process(self._process.pid).children(recursive=True):
                    with suppress(OSError):  # it has ended
                        inside.append(os.pidfd_open(process.pid))
                        handles.callback(os.close, inside[-1])
                self._process.kill()
                self._process.wait()
                kill_marked(self._mark)  # a sandbox still being made does not end by itself
                self._group.kill()  # without namespaces, what cut itself loose
                wait_for_ends(inside)


@dataclass(frozen=True, slots=True)
class _Start:
    """How the template of a box is started."""

    plan: BoxPlan
    mark: str
    writable: list[Path]
    cwd: Path
    homes: Path
    calls: Path
    group: ControlGroup
    proxy: EgressProxy | None

    def run(self, place: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start it; it announces itself at a place."""
        kind = "warm" if self.plan.is_warm else "template"
        most = self.plan.limits
        is_bwrap = self.plan.policy.tier == "bwrap"
        owner = 0 if is_bwrap else os.getpid()
        processes = most.process_limit if is_bwrap and counts_by_sandbox() else 0
        numbers = most.for_launcher(owner, processes)
        command = python_command(kind, str(place), *map(str, numbers))
        fonts = self.plan.font_lists()
        tmp = "/tmp" if is_bwrap else str(self._private_tmp(fonts))
        environment = kernel_environment(self.mark)
        own = {"MPLCONFIGDIR": f"{tmp}/.matplotlib", "IPYTHONDIR": f"{tmp}/.ipython"}
        environment |= {"HOME": str(self.cwd), "TMPDIR": tmp, **own}
        copies = [(path, f"{tmp}/.matplotlib/{path.name}") for path in fonts]
        copies.append((self.calls, str(self.calls)))
        if self.proxy is not None:
            copies.append((self.proxy.path, _PROXY))
            command = bridged(command, _PROXY)
            environment |= bridge_environment()
        with confined(self.plan.policy, self.writable, command, copies) as run:
            return subprocess.Popen(
                self.group.joined(run.command),
                cwd=self.cwd,
                env=environment,
                pass_fds=run.pass_fds,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _private_tmp(self, fonts: list[Path]) -> Path:
        """Make a folder for temporary files where ``/tmp`` is everybody's."""
        folder = self.homes / "tmp"
        (folder / ".matplotlib").mkdir(parents=True)
        for path in fonts:
            shutil.copy(path, folder / ".matplotlib")
        return folder


class Boxes:
    """The sandboxes of an application, by the folder of the session."""

    def __init__(self, plan: BoxPlan) -> None:
        self._plan = plan
        self._boxes: dict[Path, Box] = {}

    @property
    def tier(self) -> str:
        """What keeps them."""
        return self._plan.policy.tier

    def start(self, place: KernelPlace, is_wanted: Callable[[], bool]) -> KernelProcess:
        """Start a kernel in the box of its session; a box that has ended is replaced.

        Args:
            place: Where it belongs.
            is_wanted: Tells whether to wait on.

        Raises:
            ForkRefused: If the template does not come up, or is not wanted any more.
            SandboxUnavailable: If there can be none here.
            OSError: If it cannot be started.
        """
        folder, own = place.folder, (place.cwd, place.log_path)
        box = self._boxes.get(folder)
        if box is not None:
            try:
                return box.start(*own)
            except ForkRefused:
                self.close(folder)
        policy = replace(self._plan.policy, devices=place.devices)
        self._boxes[folder] = Box(replace(self._plan, policy=policy), place, is_wanted)
        return self._boxes[folder].start(*own)

    def close(self, folder: Path) -> None:
        """End a session's box, if there is one."""
        box = self._boxes.pop(folder, None)
        if box is not None:
            box.close()

    def close_all(self) -> None:
        """End every box."""
        for folder in list(self._boxes):
            self.close(folder)
