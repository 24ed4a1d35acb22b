"""The memory of some processes together; pages that they share count once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from taskweaver.ces.bounds.processes import Process
from taskweaver.ces.process.footprint import read_rollup


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The memory of a process.

    Attributes:
        bytes: Its part: a page that several processes share counts in parts.
        in_files: The part of it that is in shared files of memory.
        shared: Resident bytes that other processes use too.
        shared_part: The part of the shared bytes that counts for this process.
        is_seen: Whether the process may be looked into; else it counts with all it shares.
    """

    bytes: int
    in_files: int = 0
    shared: int = 0
    shared_part: int = 0
    is_seen: bool = True


def memory_uses(
    processes: Mapping[int, Process], templates: Collection[int]
) -> dict[int, MemoryUse]:
    """Return the memory of each process.

    The memory of templates and snapshots in a sandbox is closed to the code beside them, and to an
    ordinary user; they hand over a file that describes it. Where one handed over no file, or a
    wrong one, an estimate takes its place: templates run no code of the session, and share pages
    with its kernels, of whose pages it is known how often they are shared.
    """
    uses = {one.pid: _memory_use(one) for one in processes.values()}
    seen = [use for use in uses.values() if use.is_seen and use.shared]
    shared = sum(use.shared for use in seen)
    most = max((use.shared for use in seen), default=0)
    saved = 1 - sum(use.shared_part for use in seen) / shared if shared else 0.0
    for pid in set(templates) & uses.keys():
        use = uses[pid]
        if not use.is_seen:
            uses[pid] = replace(use, bytes=use.bytes - int(min(use.bytes, most) * saved))
    return uses


def _memory_use(process: Process) -> MemoryUse:
    sizes = read_rollup(process.pid)
    if not sizes:
        return MemoryUse(process.resident_bytes, is_seen=False)
    private = sizes.get("Private_Clean", 0) + sizes.get("Private_Dirty", 0)
    part = sizes.get("Pss", process.resident_bytes)
    resident = sizes.get("Rss", process.resident_bytes)
    return MemoryUse(part, sizes.get("Pss_Shmem", 0), resident - private, part - private)
