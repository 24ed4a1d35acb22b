"""Limits of a kernel's resources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil

from taskweaver.ces.cgroup_tree import own_memory_limit
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.config.keys.key import Key
from taskweaver.config.keys.known_keys import BY_NAME

LIMIT_KEYS = (
    "start_timeout_s",
    "cell_timeout_s",
    "memory_limit_mb",
    "output_limit_kb",
    "artifact_limit_mb",
    "process_limit",
    "open_file_limit",
    "file_limit_mb",
    "folder_limit_mb",
    "log_limit_mb",
    "cpu_limit_s",
)
"""Keys under ``execution.`` that set a kernel's limits."""
_UNIT_BITS = {"kb": 10, "mb": 20}


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """Limits of a kernel and of each cell, where 0 sets no limit.

    Attributes:
        start_timeout_s: Longest wait for the kernel to come up.
        cell_timeout_s: Longest time for one cell.
        memory_limit_bytes: Resident memory of all processes of a session together; pages that
            they share count once.
        output_limit_bytes: Output kept of one cell; the kernel itself drops the rest.
        artifact_limit_bytes: Largest file that is listed as an artifact.
        process_limit: Processes and threads of a session.
        file_limit_bytes: Largest file that can be written.
        cpu_limit_s: Processor time of each process.
        open_file_limit: Open files of each process.
        folder_limit_bytes: Size of the working folders of a session together.
        log_limit_bytes: Size of a session's ``kernel.log``.
    """

    start_timeout_s: float
    cell_timeout_s: float
    memory_limit_bytes: int
    output_limit_bytes: int
    artifact_limit_bytes: int
    process_limit: int = 0
    file_limit_bytes: int = 0
    cpu_limit_s: int = 0
    open_file_limit: int = 0
    folder_limit_bytes: int = 0
    log_limit_bytes: int = 0

    @classmethod
    def from_source(cls, src: AppConfigSource) -> KernelLimits:
        """Return the limits of a configuration.

        Raises:
            ConfigError: If one is of the wrong type, or too low.
        """
        return cls._read(
            lambda key: src.read(key) if key.default is not None else src.read(key, None)
        )

    @classmethod
    def default(cls) -> KernelLimits:
        """Return the limits of an empty configuration."""
        return cls._read(lambda key: key.default)

    @classmethod
    def _read(cls, value_of: Callable[[Key], Any]) -> KernelLimits:
        fields: dict[str, Any] = {}
        for name in LIMIT_KEYS:
            value, (field, _, unit) = value_of(BY_NAME[f"execution.{name}"]), name.rpartition("_")
            if unit in _UNIT_BITS:
                is_unset = value is None  # only the memory's has no default
                value = half_of_memory() if is_unset else value << _UNIT_BITS[unit]
                name = f"{field}_bytes"
            fields[name] = value
        return cls(**fields)

    def of_process(self, processes: int) -> tuple[int, ...]:
        """Return a process's limits, see `inkernel.process`, where `processes` 0 sets no limit."""
        return (processes, self.file_limit_bytes, self.cpu_limit_s, self.open_file_limit)


def half_of_memory() -> int:
    """Return half of the memory in bytes that this process can have: the machine's, or less.

    In a container the limit of its control group counts, where that is lower.
    """
    machine: int = psutil.virtual_memory().total
    return min(machine, own_memory_limit() or machine) // 2 >> 20 << 20
