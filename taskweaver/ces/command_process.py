"""The processes of one command: started, kept within their bounds, and ended.

In bubblewrap the namespace of process ids ends with its first process, and everything in it.
Without one, processes that a command started are found by its process group, its control group
where there may be one, and the mark in its environment; a process that makes a session of its own
and removes the mark survives where there is no control group.
"""

from __future__ import annotations

import fcntl
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from taskweaver.ces.bounds.bound import KEYS
from taskweaver.ces.bounds.cgroup import ControlGroup, counts_by_sandbox
from taskweaver.ces.bounds.watcher import (
    Breach,
    WatchedLimits,
    Watcher,
    family,
    room_for_processes,
    running_processes,
    watched,
)
from taskweaver.ces.environment import bridge_environment, bridged, command_environment
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.process.handles import has_ended
from taskweaver.ces.process.homes import private_folder, remove_folder
from taskweaver.ces.process.marked import kill_all_marked
from taskweaver.ces.sandbox.sandbox import confined, require
from taskweaver.utils.ids import create_id

_SLICE_S = 0.25
WORKSPACE = "/workspace"
"""What the workspace is called inside of bubblewrap, beside its own path."""

_BASH = ["/bin/bash", "--noprofile", "--norc", "-c"]
_PROXY = "/run/egress"
_CPU_GRACE_S = 2
_END_WAIT_S = 5.0
_PIPE_BYTES = 1 << 20
_LIMITS = (
    # Resource, bash's letter for it, bytes of its unit.
    (resource.RLIMIT_FSIZE, "f", 1024),
    (resource.RLIMIT_NPROC, "u", 1),
    (resource.RLIMIT_NOFILE, "n", 1),
)


class CommandGuard:
    """Guard that keeps a command within bounds, in the waiting thread. Close the guard.

    Attributes:
        slice_s: Longest time between two looks; None where nothing needs to be looked at.
    """

    def __init__(
        self, group: ControlGroup, pid: int, limits: WatchedLimits, workspace: Path
    ) -> None:
        self._group = group
        self._pid = pid
        self._watcher = Watcher(limits)
        self._watcher.add_folder(workspace)
        self._watcher.begin()
        self._breaches: list[Breach] = []
        self.slice_s = _SLICE_S if limits != WatchedLimits() else None
        # What has just begun has no size yet, and many commands end before it is time.
        self._due = time.monotonic() + _SLICE_S

    @property
    def is_exceeded(self) -> bool:
        """True if the command must end, and must not count as done."""
        return any(breach.stops for breach in self._breaches)

    def look(self) -> bool:
        """Measure when due, and return whether the command has to end."""
        now = time.monotonic()
        if self.slice_s is None or now < self._due:
            return False
        self._due = now + self.slice_s
        self._breaches += self._watcher.look(family(running_processes(), {self._pid}), ())
        return self.is_exceeded

    def finish(self) -> str:
        """Return a sentence for each exceeded bound, before the end.

        A command that is over has filled its workspace already: it is measured once more.
        """
        if self.slice_s is not None:
            self._breaches += self._watcher.look({}, (), is_last=True)
        events = self._group.events()
        texts = [breach.text for breach in self._breaches]
        if events.killed:
            key = KEYS["memory"]
            texts.append(f"Memory reached all that {key} allows. The system ended a process.")
        if events.refused:
            key = KEYS["processes"]
            texts.append(f"Processes and threads reached all that {key} allows.")
        return " ".join(dict.fromkeys(texts))

    def close(self) -> None:
        """Break the measuring off."""
        self._watcher.close()


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """Limits of a command, where 0 sets no limit.

    Attributes:
        timeout_s: Longest time.
        memory_bytes: Resident memory of all its processes together.
        process_limit: Processes and threads.
        file_bytes: Largest file that is written.
        open_files: Open files of each process.
        folder_bytes: Size of the workspace.
        cpu_s: Processor time of each process.
        output_bytes: Output that is kept in the log; the rest is counted.
        tail_bytes: Beginning and end of the output that are kept in any case.
    """

    timeout_s: float = 0.0
    memory_bytes: int = 0
    process_limit: int = 0
    file_bytes: int = 0
    open_files: int = 0
    folder_bytes: int = 0
    cpu_s: int = 0
    output_bytes: int = 1 << 20
    tail_bytes: int = 16 << 10


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Attributes:
        run: Its words, or a text for bash.
        workspace: Folder it may write; in bubblewrap it is called `WORKSPACE` too.
        cwd: Working directory; None is the workspace.
        variables: Environment variables, beside those every command gets.
        sandbox: Policy of its sandbox; None runs it without one.
        limits: Limits of its resources.
    """

    run: str | tuple[str, ...]
    workspace: Path
    cwd: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    sandbox: SandboxPolicy | None = None
    limits: CommandLimits = field(default_factory=CommandLimits)


class RunningCommand:
    """A command that runs.

    Attributes:
        output_fd: Where its output is read; does not block.
        death_fd: Readable when its first process has ended.
        guard: Keeps it within its bounds.
    """

    def __init__(
        self,
        start: _Start,
        process: subprocess.Popen[bytes],
        output_fd: int,
        info_fd: int | None,
    ) -> None:
        self.output_fd = output_fd
        self.death_fd = os.pidfd_open(process.pid)
        self._process = process
        self._info_fd = info_fd
        self._mark = start.mark
        self._group = start.group
        self.guard = CommandGuard(
            start.group, process.pid, start.watched(), start.command.workspace
        )
        self._info = b""
        self._inner_fd: int | None = None
        self._code: int | None = None
        self.has_begun = info_fd is None

    def end(self) -> int:
        """Kill all processes of the command that still run, and return the exit code of Popen.

        Once all is known to be gone, calling it again does nothing.
        """
        if self._code is not None:
            return self._code
        self._meet_sandbox()
        if self._process.returncode is None:  # its number is still its own
            with suppress(ProcessLookupError):  # it is gone, and nothing is left in its group
                os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        self._meet_sandbox()  # it may have begun at the last moment
        self._group.kill()
        fd = self._inner_fd
        is_gone = kill_all_marked(self._mark) if fd is None else self._kill_inner(fd)
        self._code = code if is_gone else None
        return code

    def _kill_inner(self, fd: int) -> bool:
        """Kill the sandbox's first process, and return whether the sandbox is gone."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        return has_ended(fd, _END_WAIT_S)

    def _meet_sandbox(self) -> None:
        """Take hold of the sandbox's first process, whose end is the end of all inside."""
        if self._info_fd is None or self.has_begun:
            return
        with suppress(BlockingIOError):  # it has not come so far
            self._info += os.read(self._info_fd, 4096)  # a part at a time
        found = re.search(rb'"child-pid": *(\d+)\D', self._info)
        if found is None:
            return
        self.has_begun = True
        with suppress(ProcessLookupError):  # it has ended
            self._inner_fd = os.pidfd_open(int(found[1]))

    def close(self) -> None:
        """End the command, and give everything back."""
        try:
            self.end()
        finally:
            for fd in (self.death_fd, self._inner_fd):
                if fd is not None:
                    os.close(fd)
            self.guard.close()


@contextmanager
def started(command: Command) -> Iterator[RunningCommand]:
    """Start a command. All processes of the command have ended after the ``with``.

    Raises:
        SandboxUnavailable: If its sandbox cannot be had here.
        ConfigError: If a host its sandbox allows is not one.
        OSError: If it cannot be started: its folder is missing, or its text is too long.
        ValueError: If it holds a NUL.
    """
    # Links in a path lead nowhere inside of a sandbox.
    workspace = command.workspace.resolve()
    command = replace(command, workspace=workspace, cwd=(command.cwd or workspace).resolve())
    with ExitStack() as stack:
        group = ControlGroup(command.limits.process_limit, command.limits.memory_bytes)
        stack.callback(group.remove)
        tmp = private_folder()
        stack.callback(remove_folder, tmp)
        running = _Start(command, group, tmp, create_id("command"), stack).confined()
        stack.callback(running.close)
        yield running


@dataclass(frozen=True, slots=True)
class _Start:
    command: Command
    group: ControlGroup
    tmp: Path
    mark: str
    stack: ExitStack

    def confined(self) -> RunningCommand:
        policy = self.command.sandbox
        environment = command_environment(self.mark, self.command.workspace, self.tmp)
        words = _limited(self.command, self.watched())
        if policy is None:
            return self._popen(words, environment, (), None)
        require(policy.tier)
        copies = []
        if policy.allowed_hosts and not policy.has_network and policy.tier == "bwrap":
            # Few commands need it, and its parts are a sixth of a worker's start.
            from taskweaver.ces.sandbox.egress import EgressProxy

            proxy = EgressProxy(policy.allowed_hosts)
            self.stack.callback(proxy.close)
            copies.append((proxy.path, _PROXY))
            words = bridged(words, _PROXY)
            environment |= bridge_environment()
        own = list(dict.fromkeys([self.command.workspace, self.tmp]))
        aliases = [(self.command.workspace, WORKSPACE)]
        with confined(policy, own, words, copies, aliases) as run:
            if policy.tier == "landlock":
                return self._popen(run.command, environment, run.pass_fds, None)
            info, told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            self.stack.callback(os.close, info)
            try:
                bwrap, *options = run.command
                words = [bwrap, "--info-fd", str(told), *options]
                return self._popen(words, environment, [*run.pass_fds, told], info)
            finally:
                os.close(told)

    def _popen(
        self,
        words: list[str],
        environment: dict[str, str],
        pass_fds: list[int] | tuple[int, ...],
        info: int | None,
    ) -> RunningCommand:
        source, sink = os.pipe2(os.O_CLOEXEC)
        self.stack.callback(os.close, source)
        try:
            os.set_blocking(source, False)
            with suppress(PermissionError):  # this user's pipes are many already: a small one does
                fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            process = subprocess.Popen(
                self.group.joined(words),
                cwd=self.command.cwd,
                env=environment | dict(self.command.variables),
                pass_fds=pass_fds,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        finally:
            os.close(sink)
        return RunningCommand(self, process, source, info)

    def watched(self) -> WatchedLimits:
        """Return the bounds that neither the control group nor the sandbox holds."""
        own, sandbox = self.command.limits, self.command.sandbox
        limits = WatchedLimits(own.memory_bytes, own.process_limit, own.folder_bytes)
        return watched(limits, self.group, "none" if sandbox is None else sandbox.tier)


def _limited(command: Command, watched: WatchedLimits) -> list[str]:
    """Return the words that set the limits, and then run the command."""
    limits = command.limits
    is_bwrap = command.sandbox is not None and command.sandbox.tier == "bwrap"
    processes = limits.process_limit if is_bwrap and counts_by_sandbox() else 0
    if watched.processes and not processes and os.geteuid() != 0:
        processes = room_for_processes(limits.process_limit)  # so that there is time to watch
    steps = ["ulimit -c 0"]
    for (which, letter, unit), wanted in zip(
        _LIMITS, (limits.file_bytes, processes, limits.open_files), strict=True
    ):
        if wanted:
            steps.append(f"ulimit -{letter} {-(-_lowest(which, wanted) // unit)}")
    if limits.cpu_s:
        most = _lowest(resource.RLIMIT_CPU, limits.cpu_s + _CPU_GRACE_S)
        # Over the soft limit the system says why; over the hard one, no more.
        steps += [f"ulimit -St {min(limits.cpu_s, most)}", f"ulimit -Ht {most}"]
    steps.append('exec -- "$@"')
    run = [*_BASH, command.run] if isinstance(command.run, str) else list(command.run)
    if not run or not run[0]:
        raise ValueError("the command is empty")
    return [*_BASH, " && ".join(steps), "limits", *run]


def _lowest(which: int, wanted: int) -> int:
    """Return a limit that can be set: one that is lower already stays."""
    hard = resource.getrlimit(which)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
