"""Sandboxes of sessions: each has a template in it, from which the session's kernels start."""

from __future__ import annotations

import os
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import psutil

from taskweaver.ces.anchor import Anchor
from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.kernel.paths import KernelPaths
from taskweaver.ces.process.handles import wait_for_ends
from taskweaver.ces.process.homes import Homes
from taskweaver.ces.process.marked import kill_marked, owned_mark
from taskweaver.ces.process.process import KernelProcess
from taskweaver.ces.sandbox.egress import EgressProxy
from taskweaver.ces.sandbox.sandbox import require
from taskweaver.ces.sandbox.sandbox_start import SandboxPlan, SandboxStart
from taskweaver.ces.template import Handshake, Rendezvous, Template
from taskweaver.ces.zygote import Zygote

WORKING_FOLDERS = ("cwd", "branches")
"""Folders in a session's that its kernels may write; the conversation beside them they may not."""


class SessionSandbox:
    """A sandbox that runs. Close it: everything in it ends."""

    def __init__(
        self,
        plan: SandboxPlan,
        place: KernelPaths,
        is_wanted: Callable[[], bool],
        warm: Zygote | None = None,
    ) -> None:
        """Start it; call this from a thread that lives as long as the box.

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
        self, start: SandboxStart, log_path: Path, is_wanted: Callable[[], bool], warm: Zygote
    ) -> Handshake | None:
        """Have a warm process fork a template that enters; None where it has to start cold."""
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

    def _start_cold(
        self, start: SandboxStart, log_path: Path, is_wanted: Callable[[], bool]
    ) -> Handshake:
        with (
            self._homes.new() as home,
            Rendezvous(home) as expected,
            log_path.open("ab") as log,
        ):
            self._process = start.cold(expected.path, log)
            timeout_s = start.plan.limits.start_timeout_s
            return expected.arrive_started(self._process, timeout_s, is_wanted)

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
        self._homes.remove()

    def _started(self, arrival: Handshake) -> subprocess.Popen[bytes] | None:
        """Return the process that was started where it is the template: without namespaces."""
        process = self._process
        return process if process is not None and process.pid == arrival.handle.pid else None

    @property
    def _first_process(self) -> subprocess.Popen[bytes] | None:
        """The process whose end is the end of the sandbox; None before it is started."""
        return self._process if self._anchor is None else self._anchor.process

    def _kill(self) -> None:
        """Kill the sandbox, and wait for all that the system ends with it."""
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
    """The sandboxes of an application, by the folder of the session; for any thread."""

    def __init__(self, plan: SandboxPlan, warm: Zygote | None = None) -> None:
        self._plan = plan
        self._warm = warm
        self._boxes: dict[Path, SessionSandbox] = {}
        self._locks: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)

    def start(self, place: KernelPaths, is_wanted: Callable[[], bool]) -> KernelProcess:
        """Start a kernel in the box of its session; a box that has ended is replaced.

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
