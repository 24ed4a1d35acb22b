"""Sandboxes of sessions: their starts, and the template in each from which kernels start.

A template is forked from a warm process, which starts outside and is tried before it is used. It
has imported the usual libraries and runs no code of a session. Its program is opened on the
read-only mounts of a sandbox: a process that it forks could otherwise change the interpreter of
this machine through ``/proc/self/exe``, wherever it has moved since.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

import psutil

from taskweaver.ces.bounds.cgroup import ControlGroup, counts_by_sandbox
from taskweaver.ces.environment import KERNEL_MARK, bridge_environment, bridged, kernel_environment
from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.inkernel.sandbox.entry import Entry
from taskweaver.ces.kernel.running import KernelPaths
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.process.handles import wait_for_ends
from taskweaver.ces.process.homes import Homes, temporary_folder
from taskweaver.ces.process.marked import kill_marked, owned_mark
from taskweaver.ces.process.process import KernelProcess, launcher_command
from taskweaver.ces.sandbox.egress import EgressProxy
from taskweaver.ces.sandbox.sandbox import (
    confined,
    confinement,
    facts_of_outside,
    refuse_escapes,
    require,
)
from taskweaver.ces.template import (
    PROGRAM,
    Anchor,
    Handshake,
    IsWanted,
    Rendezvous,
    Template,
    warm_template,
)
from taskweaver.ces.zygote import Zygote

_FONT_LISTS = "fontlist-*.json"
_PROXY = "/run/egress"
_FONTS_LOCK = threading.Lock()
_END_WAIT_S = 5.0
WORKING_FOLDERS = ("cwd", "branches")
"""Folders in a session's that its kernels may write; the conversation beside them they may not."""


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """Plan from which sandboxes are made.

    With `is_warm` the usual libraries are imported before they are asked for.
    """

    policy: SandboxPolicy
    limits: KernelLimits
    is_warm: bool

    def font_lists(self) -> list[Path]:
        """Return matplotlib's lists of fonts, made if missing.

        Without one, matplotlib would look at every font of the machine in each sandbox anew.
        """
        with suppress(OSError, RuntimeError, subprocess.TimeoutExpired), _FONTS_LOCK:
            cache = _cache_folder() / "matplotlib"
            if not any(cache.glob(_FONT_LISTS)):
                cache.mkdir(parents=True, exist_ok=True)
                subprocess.run(
                    # -P: nothing is imported from the current folder, which may be anybody's.
                    [sys.executable, "-P", "-c", "import matplotlib.font_manager"],
                    cwd=cache,
                    env={**os.environ, "MPLCONFIGDIR": str(cache)},
                    capture_output=True,
                    timeout=self.limits.start_timeout_s,
                    check=False,
                )
            return sorted(cache.glob(_FONT_LISTS))
        return []  # there is no home folder, or none to write: they are made inside


def _cache_folder() -> Path:
    """Return the user's folder for files that can be made again (XDG base directories)."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))  # a relative path is to be ignored
    return (named if named.is_absolute() else Path.home() / ".cache") / "taskweaver"


@dataclass(frozen=True, slots=True)
class SandboxStart:
    """Start of one sandbox.

    `homes` holds the private folders of its kernels, `calls` the sockets that it shows.
    """

    plan: SandboxPlan
    mark: str
    writable: list[Path]
    cwd: Path
    homes: Path
    calls: Path
    group: ControlGroup
    proxy: EgressProxy | None = None

    def __post_init__(self) -> None:
        """Make a folder for temporary files, with lists of fonts, where there are no namespaces."""
        if not self._has_namespaces:  # `/tmp` is everybody's
            (Path(self._tmp) / ".matplotlib").mkdir(parents=True)
            for path in self.plan.font_lists():
                shutil.copy(path, Path(self._tmp) / ".matplotlib")

    @property
    def _has_namespaces(self) -> bool:
        return self.plan.policy.tier == "bwrap"

    @property
    def _tmp(self) -> str:
        return "/tmp" if self._has_namespaces else str(self.homes / "tmp")

    def environment(self) -> dict[str, str]:
        """Return the environment of processes inside."""
        own = {"MPLCONFIGDIR": f"{self._tmp}/.matplotlib", "IPYTHONDIR": f"{self._tmp}/.ipython"}
        places = {"HOME": str(self.cwd), "PWD": str(self.cwd), "TMPDIR": self._tmp, **own}
        bridge = {} if self.proxy is None else bridge_environment()
        return kernel_environment(self.mark) | places | bridge

    def _copies(self) -> list[tuple[Path, str]]:
        fonts = self.plan.font_lists()
        copies = [(path, f"{self._tmp}/.matplotlib/{path.name}") for path in fonts]
        copies.append((self.calls, str(self.calls)))
        if self.proxy is not None:
            copies.append((self.proxy.path, _PROXY))
        return copies

    @property
    def _own_processes(self) -> int:
        """The limit on processes that a process inside can set for itself, or 0 for no limit."""
        is_counted = self._has_namespaces and counts_by_sandbox()
        return self.plan.limits.process_limit if is_counted else 0

    def cold(self, place: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a template in the sandbox from nothing.

        Raises:
            OSError: If it cannot be started.
        """
        kind = "warm" if self.plan.is_warm else "template"
        owner = 0 if self._has_namespaces else os.getpid()
        words = launcher_command(kind, place, self.plan.limits, owner, self._own_processes)
        return self._run(words, subprocess.DEVNULL, log, log)

    def _run(
        self, command: list[str], stdin: int, stdout: int | IO[bytes], stderr: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a command in the sandbox, with the bridge to the proxy if there is one."""
        words = command if self.proxy is None else bridged(command, _PROXY)
        with confined(self.plan.policy, self.writable, words, self._copies()) as run:
            return subprocess.Popen(
                self.group.joined(run.command),
                bufsize=0,
                cwd=self.cwd,
                env=self.environment(),
                pass_fds=run.pass_fds,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )

    def anchor(self, log: IO[bytes], is_wanted: IsWanted) -> Anchor | None:
        """Start the sandbox with an anchor inside, or return None where there are no namespaces.

        Raises:
            ForkRefused: If it does not come up.
            OSError: If it cannot be started.
        """
        if not self._has_namespaces:
            return None
        process = self._run(PROGRAM, subprocess.PIPE, subprocess.PIPE, log)
        return Anchor(process, self.plan.limits.start_timeout_s, is_wanted)

    def entry(
        self,
        expected: Rendezvous,
        log_path: Path,
        anchor: Anchor | None,
        facts: Mapping[str, object] | None = None,
    ) -> Entry:
        """Return the request to a warm process to fork a template that enters the sandbox."""
        return Entry(
            socket=str(expected.path),
            secret=expected.secret,
            log=str(log_path),
            namespaces=0 if anchor is None else anchor.namespaces,
            cwd=str(self.cwd),
            environment=self.environment(),
            limits=list(self.plan.limits.of_process(self._own_processes)),
            confinement=asdict(confinement(self.plan.policy, self.writable)),
            facts=dict(facts or {}),
        )


def sandbox_template(plan: SandboxPlan, log_path: Path, is_wanted: IsWanted) -> Template:
    """Start a warm process, and try a sandbox that a forked child enters.

    Raises:
        ForkRefused: If it does not come up.
        SandboxUnavailable: If a process that enters a sandbox can do more than it may.
        OSError: If a process cannot be started.
    """
    # Below `/tmp`, of which every sandbox has its own: matplotlib remembers the path.
    with temporary_folder() as folder, temporary_folder(Path("/tmp")) as settings:
        for path in plan.font_lists():
            shutil.copy(path, settings)
        trial = _trial(plan, folder)
        with ExitStack() as stack, (folder / "trial.log").open("ab") as log:
            stack.callback(kill_marked, trial.mark)  # a sandbox that did not come up
            anchor = trial.anchor(log, is_wanted)
            program = None
            if anchor is not None:
                stack.callback(anchor.close)
                program = anchor.path(Path(sys.executable).resolve())
            # No place of this user: code inside can read it. A sandbox's mark replaces this one.
            own = {"HOME": "/", "TMPDIR": "/tmp", "MPLCONFIGDIR": str(settings)}
            own |= {KERNEL_MARK: owned_mark()}
            template = warm_template(
                plan.limits, log_path, is_wanted, executable=program, environment=own
            )
            try:
                _attempt(template, trial, anchor, is_wanted)
            except BaseException:
                template.close()
                raise
    return template


def _attempt(
    template: Template, trial: SandboxStart, anchor: Anchor | None, is_wanted: IsWanted
) -> None:
    """Have a fork enter a sandbox and attempt things there that must fail.

    Raises:
        SandboxUnavailable: If something can be done that the sandbox must prevent.
    """
    tier, log_path = trial.plan.policy.tier, trial.homes / "log"
    with (
        facts_of_outside(trial.homes.parent) as facts,
        Homes(trial.homes).new() as home,
        Rendezvous(home) as expected,
    ):
        entry = trial.entry(expected, log_path, anchor, facts | {"is_entered": True})
        arrival = template.enter(entry, anchor, expected, is_wanted)
    try:
        refuse_escapes(tier, json.loads((trial.cwd / "here").read_text()))
        if anchor is not None:
            anchor.close()
            if not arrival.handle.has_ended(_END_WAIT_S):
                refuse_escapes(tier, ["outlive its owner"])
    finally:
        arrival.handle.close()
        arrival.connection.close()


def _trial(plan: SandboxPlan, folder: Path) -> SandboxStart:
    """Return the start of a sandbox that grants nothing."""
    inside, homes, calls = (folder / name for name in ("inside", "homes", "calls"))
    for path in (inside, homes, calls):
        path.mkdir()
    bare = replace(plan, policy=SandboxPolicy(tier=plan.policy.tier))
    return SandboxStart(bare, owned_mark(), [inside, homes], inside, homes, calls, ControlGroup(0))


class SessionSandbox:
    """A running sandbox. To close it ends all processes inside."""

    def __init__(
        self,
        plan: SandboxPlan,
        place: KernelPaths,
        is_wanted: IsWanted,
        warm: Zygote | None = None,
    ) -> None:
        """Start the sandbox, from a thread that lives as long as the box.

        Of `place` only working directories can be written. Without `warm`, the keeper of the warm
        process that the template is forked from, or where that fails, the template starts from
        nothing.

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
        self._mark = owned_mark()
        self._homes = Homes.sandboxed()
        self._group = place.guard.new_group()
        self._proxy: EgressProxy | None = None
        self._anchor: Anchor | None = None
        self._process: subprocess.Popen[bytes] | None = None
        # What is below the others can be a link that code made there: it must not be followed.
        inner = [] if set(own) & {cwd, *cwd.parents} else [cwd]
        writable = [*own, *inner, log_path, self._homes.folder]
        try:
            if plan.policy.allowed_hosts and not plan.policy.has_network:
                self._proxy = EgressProxy(plan.policy.allowed_hosts)
            where = (writable, cwd, self._homes.folder, place.calls)
            start = SandboxStart(plan, self._mark, *where, self._group, self._proxy)
            arrival = None if warm is None else self._enter(start, log_path, is_wanted, warm)
            arrival = arrival or self._start_cold(start, log_path, is_wanted)
            timeout_s = plan.limits.start_timeout_s
            self._template = Template(arrival, timeout_s, self._started(arrival), self._homes)
            place.guard.adopt_family(arrival.handle.pid)
            process = self._first_process
            if process is not None:
                place.guard.adopt_family(process.pid)
        except BaseException:
            self._kill()
            self._release()
            raise

    def _enter(
        self, start: SandboxStart, log_path: Path, is_wanted: IsWanted, warm: Zygote
    ) -> Handshake | None:
        """Have a warm process fork a template that enters. None means a cold start."""
        template = warm.template()
        if template is None:
            return None
        try:
            with (
                self._homes.new() as home,
                Rendezvous(home) as expected,
                log_path.open("ab") as log,
            ):
                self._anchor = start.anchor(log, is_wanted)
                entry = start.entry(expected, log_path, self._anchor)
                arrival = template.enter(entry, self._anchor, expected, is_wanted)
            self._group.add(arrival.handle.pid)
        except (ForkRefused, OSError) as error:
            if not is_wanted():
                raise
            warm.note(f"a sandbox was not entered by a fork: {error}")
            self._kill()
            self._anchor = None
            self._group.reopen()
            return None
        return arrival

    def _start_cold(self, start: SandboxStart, log_path: Path, is_wanted: IsWanted) -> Handshake:
        with (
            self._homes.new() as home,
            Rendezvous(home) as expected,
            log_path.open("ab") as log,
        ):
            self._process = start.cold(expected.path, log)
            timeout_s = start.plan.limits.start_timeout_s
            return expected.arrive_started(self._process, timeout_s, is_wanted)

    def start(self, cwd: Path, log_path: Path) -> KernelProcess:
        """Start a kernel inside that is not ready yet.

        Raises:
            ForkRefused: If the box has ended.
        """
        return self._template.spawn(cwd, log_path)

    def close(self) -> None:
        """End all processes inside. Safe to call again."""
        self._template.close()
        self._kill()
        self._release()

    def _release(self) -> None:
        if self._proxy is not None:
            self._proxy.close()
        self._group.remove()
        self._homes.remove()

    def _started(self, arrival: Handshake) -> subprocess.Popen[bytes] | None:
        """Return the started process if that is the template: without namespaces."""
        process = self._process
        return process if process is not None and process.pid == arrival.handle.pid else None

    @property
    def _first_process(self) -> subprocess.Popen[bytes] | None:
        """The process whose end is the end of the sandbox, or None before the start."""
        return self._process if self._anchor is None else self._anchor.process

    def _kill(self) -> None:
        """Kill the sandbox, and wait for all processes inside."""
        process = self._first_process
        with ExitStack() as handles:
            inside = []
            if process is not None and process.returncode is None:
                for child in psutil.Process(process.pid).children(recursive=True):
                    with suppress(OSError):  # it has ended
                        inside.append(os.pidfd_open(child.pid))
                        handles.callback(os.close, inside[-1])
                process.kill()
                process.wait()
            if self._anchor is not None:
                self._anchor.close()
            kill_marked(self._mark)  # a sandbox still being made does not end by itself
            self._group.kill()  # without namespaces, what cut itself loose
            wait_for_ends(inside)


class SessionSandboxes:
    """The sandboxes of an application by the folder of the session, for any thread."""

    def __init__(self, plan: SandboxPlan, warm: Zygote | None = None) -> None:
        self._plan = plan
        self._warm = warm
        self._boxes: dict[Path, SessionSandbox] = {}
        self._locks: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)

    def start(self, place: KernelPaths, is_wanted: IsWanted) -> KernelProcess:
        """Start a kernel in the box of its session. An ended box is replaced.

        Call this from threads that live as long as the boxes.

        Raises:
            ForkRefused: If the template does not come up, or is not wanted any more.
            SandboxUnavailable: If there can be none here.
            OSError: If it cannot be started.
        """
        folder, own = place.folder, (place.cwd, place.log_path)
        with self._locks[folder]:
            box = self._boxes.get(folder)
            if box is not None:
                try:
                    return box.start(*own)
                except ForkRefused:
                    self._boxes.pop(folder).close()
            policy = replace(self._plan.policy, devices=place.devices)
            box = SessionSandbox(replace(self._plan, policy=policy), place, is_wanted, self._warm)
            self._boxes[folder] = box
            return box.start(*own)

    def close(self, folder: Path) -> None:
        """End a session's box, if there is one."""
        with self._locks[folder]:
            box = self._boxes.pop(folder, None)
            if box is not None:
                box.close()
        if folder not in self._boxes:
            self._locks.pop(folder, None)

    def close_all(self) -> None:
        """End every box."""
        for folder in list(self._boxes):
            self.close(folder)
