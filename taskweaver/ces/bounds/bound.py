"""The bounds on a session's resources as data: limit, key and mechanism.

``/info``, ``doctor`` and the errors of cells all read this.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
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
        """The limit with the unit."""
        return f"{self.limit:,} {self.unit}".rstrip() if self.limit else _NONE

    def __str__(self) -> str:
        how = f": {self.mechanism}" if self.limit else ""
        return f"{self.name} {self.figure}{how} ({self.key})"


@cache
def held_here() -> Set[str]:
    """Make a control group to learn what can be limited here, see `ControlGroup.held`."""
    group = ControlGroup(_PROBE_PROCESSES, _PROBE_BYTES)
    try:
        return group.held
    finally:
        group.remove()


def bounds_of(
    limits: KernelLimits, tier: str, held: Set[str] | None = None
) -> tuple[ResourceBound, ...]:
    """Return the bounds on a session's resources.

    `held` is the `ControlGroup.held` of their group, or None to ask the machine.
    """
    by_group = held_here() if held is None else held
    memory = processes = _WATCHER
    if "memory" in by_group:
        memory = _GROUP
    if "pids" in by_group:
        processes = _GROUP
    elif limits_own_processes(tier):
        processes = "limit of the sandbox's user namespace"
    rows = (
        ("memory", limits.memory_limit_bytes >> 20, "MiB", memory),
        ("processes", limits.process_limit, "", processes),
        ("open files", limits.open_file_limit, "", _RLIMIT),
        ("one file", limits.file_limit_bytes >> 20, "MiB", _RLIMIT),
        ("working folder", limits.folder_limit_bytes >> 20, "MiB", _WATCHER),
        ("kernel.log", limits.log_limit_bytes >> 20, "MiB", _WATCHER),
        ("processor time", limits.cpu_limit_s, "s", _RLIMIT),
    )
    return tuple(ResourceBound(*row[:3], KEYS[row[0]], row[3]) for row in rows)


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


def limits_own_processes(tier: str) -> bool:
    """Return whether the processes of a sandbox can be counted apart from the rest of the user's.

    The system does not enforce the limit for root.
    """
    return tier == "bwrap" and os.geteuid() != 0 and counts_by_sandbox()


_SYMPTOMS = (
    # What the system says when a limit of a process is reached, and the bound behind it.
    (r"\[Errno 24\]|Too many open files", "open files"),
    (r"\[Errno 27\]|File too large|File size limit exceeded|SIGXFSZ", "one file"),
    (r"\[Errno 11\] Resource temporarily|can't start new thread|[Cc]annot fork", "processes"),
    (r"SIGXCPU|CPU time limit exceeded", "processor time"),
)


def explanations(text: str, bounds: Iterable[ResourceBound]) -> list[str]:
    """Return a sentence for each bound of which an error speaks."""
    limits = {bound.name: bound for bound in bounds if bound.limit}
    found = [name for pattern, name in _SYMPTOMS if re.search(pattern, text) and name in limits]
    return [f"The limit on {name} is {limits[name].figure} ({limits[name].key})." for name in found]
