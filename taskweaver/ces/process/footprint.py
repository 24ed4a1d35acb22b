"""Memory of a process, and the part of it that it shares with its relatives."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from taskweaver.ces.process.rollup import read_rollup
from taskweaver.utils.system.platform import HAS_LIVE_FORKS


@dataclass(frozen=True, slots=True)
class Footprint:
    """Memory of a process.

    Attributes:
        resident_bytes: All of it that is in memory.
        shared_bytes: The part that other processes use too: kernels share it until one writes.
    """

    resident_bytes: int = 0
    shared_bytes: int = 0


def footprint(pid: int) -> Footprint:
    """Return the memory of a process, from ``/proc/PID/smaps_rollup``; zeros when it ended.

    Where there is no such file, as on macOS, no part of it counts as shared.
    """
    if not HAS_LIVE_FORKS:
        return _resident(pid)
    sizes = read_rollup(pid)
    shared = sizes.get("Shared_Clean", 0) + sizes.get("Shared_Dirty", 0)
    return Footprint(sizes.get("Rss", 0), shared)


def _resident(pid: int) -> Footprint:
    try:
        return Footprint(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return Footprint()
