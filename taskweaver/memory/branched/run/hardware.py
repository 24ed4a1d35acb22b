"""Facts about processor and memory, as the system's files give them; elsewhere there are none."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import perf_counter

_SIMD = re.compile(r"(?:sse4_|avx|fma$|f16c|amx|asimd|sve|neon)")
_CPUINFO = Path("/proc/cpuinfo")
_MEMINFO = Path("/proc/meminfo")
_SYSTEM = Path("/sys/devices/system")
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_COPIED_BYTES = 64 << 20
_COPIES = 3


def field(path: Path, name: str) -> str:
    """Return the first value of ``name : value`` in a file of the system."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    pairs = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in pairs if key.strip() == name), "")


def cpu_model() -> str:
    """Return the model of the processor."""
    return field(_CPUINFO, "model name")


def caches() -> list[str]:
    """Return the caches of the first core: ``L3 Unified 32768K (shared by 8 CPUs)``."""
    found = []
    for place in sorted((_SYSTEM / "cpu/cpu0/cache").glob("index*")):
        with suppress(OSError, UnicodeDecodeError):
            level, kind, size = ((place / n).read_text().strip() for n in ("level", "type", "size"))
            sharing = _cpus_in(place / "shared_cpu_list")
            shared = f" (shared by {sharing} CPUs)" if sharing > 1 else ""
            found.append(f"L{level} {kind} {size}{shared}")
    return found


def _cpus_in(path: Path) -> int:
    """Return the number of CPUs in a file with a list like ``0-3,8``; 0 where it is not known."""
    try:
        ends = (part.partition("-") for part in path.read_text().strip().split(",") if part)
        return sum(int(last or first) - int(first) + 1 for first, _, last in ends)
    except (OSError, ValueError):
        return 0


def simd() -> list[str]:
    """Return the vector instructions of the processor, by the system's names."""
    flags = (field(_CPUINFO, "flags") or field(_CPUINFO, "Features")).split()
    return [flag for flag in flags if _SIMD.match(flag)]


def memory_mib() -> int | None:
    """Return the size of the memory."""
    size = field(_MEMINFO, "MemTotal").removesuffix("kB").strip()
    return int(size) // 1024 if size.isdigit() else None


def numa_nodes() -> list[str]:
    """Return the nodes of memory with their CPUs: ``node0 (CPUs 0-31)``."""
    found = []
    for place in sorted((_SYSTEM / "node").glob("node[0-9]*"), key=lambda place: place.name):
        with suppress(OSError):
            cpus = (place / "cpulist").read_text().strip()
            found.append(f"{place.name} (CPUs {cpus or 'none'})")
    return found


def huge_pages() -> str:
    """Return whether programs get huge pages by themselves, and the number that is reserved."""
    try:
        modes = _HUGE_PAGES.read_text().split()
    except OSError:
        modes = []
    mode = next((mode.strip("[]") for mode in modes if mode.startswith("[")), "")
    size = field(_MEMINFO, "Hugepagesize")
    reserved = field(_MEMINFO, "HugePages_Total")
    parts = [f"transparent: {mode}"] if mode else []
    parts += [f"reserved: {reserved} of {size}"] if size else []
    return ", ".join(parts)


def load() -> str:
    """Return the number of tasks that ran or waited for a CPU in the last minute, on average."""
    try:
        return f"{os.getloadavg()[0]:.1f} tasks in the minute before the start"
    except OSError:
        return ""


@cache  # the machine stays what it is while this program runs
def copy_rate() -> str:
    """Measure the rate at which one core copies memory, beside whatever else runs, once.

    It takes some 50 ms. Reads and writes are counted once each, as STREAM does; what all cores
    reach together is not measured, since that would disturb others for longer. Empty where there
    is no memory for it.
    """
    try:
        source, target = bytearray(_COPIED_BYTES), bytearray(_COPIED_BYTES)
    except MemoryError:
        return ""
    shortest_s = float("inf")
    for _ in range(_COPIES):
        since = perf_counter()
        target[:] = source
        shortest_s = min(shortest_s, perf_counter() - since)
    rate = 2 * _COPIED_BYTES / shortest_s / 1e9
    return f"{rate:.1f} GB/s read and written by one core (best of {_COPIES} copies of 64 MiB)"
