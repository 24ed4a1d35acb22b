"""The bounds on a session's resources as data: the limit, its key and its mechanism.

``/info``, ``doctor`` and the errors of cells all read this.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache

from taskweaver.ces.bounds.cgroup import ControlGroup, counts_by_sandbox
from taskweaver.ces.limits import KernelLimits

_GROUP = "control group"
_WATCHER = "watched while a cell or a process it left runs"
_RLIMIT = "limit of each process"
_NONE = "no limit"
_PROBE_PROCESSES, _PROBE_BYTES = 64, 64 << 20


@dataclass(frozen=True, slots=True)
class ResourceBound:
    """A bound.

    Attributes:
        name: The resource.
        limit: How much is allowed, in MiB or as a number; 0 is no limit.
        unit: ``MiB``, ``s``, or empty for a number.
        key: Configuration key that sets it.
        mechanism: Part of the system that enforces it.
    """

    name: str
    limit: int
    unit: str
    key: str
    mechanism: str

    @property
    def figure(self) -> str:
        """The limit with its unit."""
        return f"{self.limit:,} {self.unit}".rstrip() if self.limit else _NONE

    def __str__(self) -> str:
        how = f": {self.mechanism}" if self.limit else ""
        return f"{self.name} {self.figure}{how} ({self.key})"


@dataclass(frozen=True, slots=True)
class Held:
    """Which bounds the system keeps by a control group."""

    memory: bool = False
    processes: bool = False


@cache
def held_here() -> Held:
    """Return the bounds a control group can enforce here; one is made to find out."""
    group = ControlGroup(_PROBE_PROCESSES, _PROBE_BYTES)
    try:
        return Held(group.holds_memory, group.holds_processes)
    finally:
        group.remove()


def bounds_of(
    limits: KernelLimits, tier: str, held: Held | None = None
) -> tuple[ResourceBound, ...]:
    """Return the bounds on a session's resources.

    `held` are those its control group enforces; None asks the machine.
    """
    by_group = held_here() if held is None else held
    memory = _GROUP if by_group.memory else _WATCHER
    mebibyte = 1 << 20
    return (
        _bound("memory", limits.memory_limit_bytes // mebibyte, "MiB", memory),
        _bound("processes", limits.process_limit, "", _of_processes(tier, by_group)),
        _bound("open files", limits.open_file_limit, "", _RLIMIT),
        _bound("one file", limits.file_limit_bytes // mebibyte, "MiB", _RLIMIT),
        _bound("working folder", limits.folder_limit_bytes // mebibyte, "MiB", _WATCHER),
        _bound("kernel.log", limits.log_limit_bytes // mebibyte, "MiB", _WATCHER),
        _bound("processor time", limits.cpu_limit_s, "s", _RLIMIT),
    )


def _bound(name: str, limit: int, unit: str, mechanism: str) -> ResourceBound:
    return ResourceBound(name, limit, unit, KEYS[name], mechanism)


KEYS: Mapping[str, str] = {
    "memory": "execution.memory_limit_mb",
    "processes": "execution.process_limit",
    "open files": "execution.open_file_limit",
    "one file": "execution.file_limit_mb",
    "working folder": "execution.folder_limit_mb",
    "kernel.log": "execution.log_limit_mb",
    "processor time": "execution.cpu_limit_s",
}
"""Configuration key of each bound."""


def _of_processes(tier: str, held: Held) -> str:
    if held.processes:
        return _GROUP
    if limits_own_processes(tier):
        return "limit of the sandbox's user namespace"
    return _WATCHER


def limits_own_processes(tier: str) -> bool:
    """Return whether the processes of a sandbox can be counted apart from others of their user.

    The system does not enforce the limit for root.
    """
    return tier == "bwrap" and os.geteuid() != 0 and counts_by_sandbox()


def describe(bounds: tuple[ResourceBound, ...]) -> str:
    """Return all bounds in a line."""
    return "; ".join(map(str, bounds))


def as_rows(bounds: tuple[ResourceBound, ...]) -> list[dict[str, str | int]]:
    """Return the bounds as plain data."""
    return [asdict(bound) for bound in bounds]


_SYMPTOMS = (
    # What the system says when a limit of a process is reached, and the bound behind it.
    (r"\[Errno 24\]|Too many open files", "open files"),
    (r"\[Errno 27\]|File too large|File size limit exceeded|SIGXFSZ", "one file"),
    (r"\[Errno 11\] Resource temporarily|can't start new thread|[Cc]annot fork", "processes"),
    (r"SIGXCPU|CPU time limit exceeded", "processor time"),
)


def explanations(text: str, bounds: tuple[ResourceBound, ...]) -> list[str]:
    """Return a sentence for each bound of which an error speaks."""
    limits = {bound.name: bound for bound in bounds if bound.limit}
    found = [name for pattern, name in _SYMPTOMS if re.search(pattern, text) and name in limits]
    return [f"The limit on {name} is {limits[name].figure} ({limits[name].key})." for name in found]
