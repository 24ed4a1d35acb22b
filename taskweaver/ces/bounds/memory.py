"""The memory of some processes together; pages that they share count once."""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.ces.bounds.processes import Process
from taskweaver.ces.process.footprint import read_rollup


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The memory of a process.

    Attributes:
        bytes: Its part: a page that several processes share counts in parts.
        in_files: The part of it that is in shared files of memory.
    """

    bytes: int
    in_files: int = 0


def memory_use(process: Process) -> MemoryUse:
    """Return the memory of a process.

    The memory of templates and snapshots in a sandbox is closed to the code beside them, and to an
    ordinary user; they hand over a file that describes it. A process whose memory is closed, and
    that handed over no file or a wrong one, counts with all that it shares.
    """
    sizes = read_rollup(process.pid)
    return MemoryUse(sizes.get("Pss", process.resident_bytes), sizes.get("Pss_Shmem", 0))
