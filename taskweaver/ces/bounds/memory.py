"""The memory of some processes together; pages that they share count once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from taskweaver.ces.bounds.processes import Process


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

    An ordinary user may not look into the templates and snapshots of a sandbox: their memory is
    closed to the code beside them. They run no code of the session, and share pages with its
    kernels; how many is estimated by the kernels, which tell how often their own are shared.

    Args:
        processes: The processes.
        templates: Ids of processes of which some may be closed, and run no code of the session.
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
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text("ascii").splitlines()[1:]
    except OSError:
        return MemoryUse(process.resident_bytes, is_seen=False)
    pairs = (line.split(":") for line in lines)
    sizes = {name: int(value.split()[0]) << 10 for name, value in pairs}
    private = sizes.get("Private_Clean", 0) + sizes.get("Private_Dirty", 0)
    part = sizes.get("Pss", process.resident_bytes)
    resident = sizes.get("Rss", process.resident_bytes)
    return MemoryUse(part, sizes.get("Pss_Shmem", 0), resident - private, part - private)
