"""Facts about this machine: asked of the system and its files, never read out of prose.

Any program on the path may compile; a pattern chooses those that prompts show.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import perf_counter

Fact = str | int | list[str]
_VERSION = r"(?:-?\d+(?:\.\d+)*)?"
_COMPILER = re.compile(
    r"(?:gcc|g\+\+|gfortran|clang|clang\+\+|flang|flang-new|cc|c\+\+|CC|ftn|icx|icpx|ifx|icc|icpc"
    r"|ifort|dpcpp|nvc|nvc\+\+|nvfortran|hipcc|amdclang|amdclang\+\+|amdflang|armclang|armclang\+\+"
    r"|armflang|xlc|xlf|pgcc|pgfortran|rustc|go|julia|zig|ghc|javac|swiftc|nim|crystal|dmd|ldc2|gdc"
    r"|ocamlopt|fpc|gnatmake|mpi(?:cc|cxx|c\+\+|CC|f77|f90|fort|icc|icpc|ifort|icx|icpx|ifx)|h5cc"
    rf"|mpirun|mpiexec|srun|nvcc){_VERSION}"
)
_ALIASES = frozenset({"cc", "c++"})
_QUESTIONS = ("--version", "version", "-version")
_TOOLS = ("make", "cmake", "ninja", "git", "mpirun", "perf", "docker", "singularity", "python3")
_PACKAGES = (
    "numpy", "scipy", "pandas", "scikit-learn", "matplotlib", "seaborn", "statsmodels", "networkx",
    "sympy", "numba", "polars", "xgboost", "lightgbm", "torch", "tensorflow", "jax", "transformers",
)  # fmt: skip
_VARIABLES = ("OMP_", "KMP_", "GOMP_", "MKL_NUM", "OPENBLAS_NUM", "CUDA_VISIBLE", "SLURM_")
_VERSION_TIMEOUT_S = 5.0
_SIMD = re.compile(r"(?:sse4_|avx|fma$|f16c|amx|asimd|sve|neon)")
_CPUINFO = Path("/proc/cpuinfo")
_MEMINFO = Path("/proc/meminfo")
_SYSTEM = Path("/sys/devices/system")
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_COPIED_BYTES = 64 << 20
_COPIES = 3


def collect_environment() -> dict[str, Fact]:
    """Return facts about this machine; unknown ones are left out.

    Keys: ``os``, ``kernel``, ``machine``, ``cpu``, ``cpus`` (usable by this process),
    ``caches`` (of one core), ``simd``, ``memory_mib``, ``numa_nodes``, ``huge_pages``, ``load``,
    ``gpus``, ``compilers`` (those of MPI too, and ``nvcc`` beside a GPU), ``tools``,
    ``variables``, ``container``, ``python``, ``python_packages`` (well-known ones).
    """
    gpus = _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    found: dict[str, Fact | None] = {
        "os": _os_name(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _field(_CPUINFO, "model name") or platform.processor(),
        "cpus": _usable_cpus(),
        "memory_mib": _memory_mib(),
        "caches": _caches(),
        "simd": _simd(),
        "numa_nodes": _numa_nodes(),
        "huge_pages": _huge_pages(),
        "load": _load(),
        "gpus": gpus,
        "compilers": _versions(compilers(programs(), has_gpus=bool(gpus))),
        "tools": _versions(_TOOLS),
        "variables": sorted(
            f"{name}={value}" for name, value in os.environ.items() if name.startswith(_VARIABLES)
        ),
        "container": "yes" if _is_container() else "",
        "python": platform.python_version(),
        "python_packages": list(_packages()),
    }
    return {name: value for name, value in found.items() if value}


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _usable_cpus() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def programs() -> frozenset[str]:
    """Return the names of all programs on the path."""
    found: set[str] = set()
    for folder in os.get_exec_path():
        with suppress(OSError), os.scandir(folder) as entries:
            found |= {e.name for e in entries if os.access(e.path, os.X_OK) and e.is_file()}
    return frozenset(found)


@cache  # asked for each worker at each look
def compilers(there: frozenset[str], *, has_gpus: bool) -> tuple[str, ...]:
    """Return compilers and launchers of MPI among programs, nvcc only beside a card."""
    names = sorted(name for name in there if _COMPILER.fullmatch(name))
    return tuple(name for name in names if has_gpus or not name.startswith("nvcc"))


def _versions(names: Iterable[str]) -> list[str]:
    """Return each program with its version; a file of several names has the most telling one."""
    by_file: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (name in _ALIASES, len(name), name)):
        path = shutil.which(name)
        if path is not None:
            by_file.setdefault(os.path.realpath(path), name)
    found = sorted(by_file.values())
    return [f"{name}: {line}" if (line := _version_line(name)) else name for name in found]


@cache  # a program stays what it is while this one runs
def _version_line(name: str) -> str:
    """Return the line that says a program's version; nvcc has it below its name."""
    lines = next(filter(None, (_output(name, question) for question in _QUESTIONS)), [])
    return next((line for line in lines if "release" in line), next(iter(lines), ""))


@cache
def _packages() -> tuple[str, ...]:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    found = []
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return tuple(found)


def _output(*command: str) -> list[str]:
    """Return the lines a program prints; none when it is not there, fails or takes too long."""
    if shutil.which(command[0]) is None:
        return []
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_VERSION_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _is_container() -> bool:
    return Path("/.dockerenv").exists() or Path("/run/.containerenv").exists()


def _field(path: Path, name: str) -> str:
    """Return the first value of ``name : value`` in a file of the system."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    pairs = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in pairs if key.strip() == name), "")


def _caches() -> list[str]:
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


def _simd() -> list[str]:
    """Return the vector instructions of the processor, by the system's names."""
    flags = (_field(_CPUINFO, "flags") or _field(_CPUINFO, "Features")).split()
    return [flag for flag in flags if _SIMD.match(flag)]


def _memory_mib() -> int | None:
    """Return the size of the memory."""
    size = _field(_MEMINFO, "MemTotal").removesuffix("kB").strip()
    return int(size) // 1024 if size.isdigit() else None


def _numa_nodes() -> list[str]:
    """Return the nodes of memory with their CPUs: ``node0 (CPUs 0-31)``."""
    found = []
    for place in sorted((_SYSTEM / "node").glob("node[0-9]*"), key=lambda place: place.name):
        with suppress(OSError):
            cpus = (place / "cpulist").read_text().strip()
            found.append(f"{place.name} (CPUs {cpus or 'none'})")
    return found


def _huge_pages() -> str:
    """Return whether programs get huge pages by themselves, and the number that is reserved."""
    try:
        modes = _HUGE_PAGES.read_text().split()
    except OSError:
        modes = []
    mode = next((mode.strip("[]") for mode in modes if mode.startswith("[")), "")
    size = _field(_MEMINFO, "Hugepagesize")
    reserved = _field(_MEMINFO, "HugePages_Total")
    parts = [f"transparent: {mode}"] if mode else []
    parts += [f"reserved: {reserved} of {size}"] if size else []
    return ", ".join(parts)


def _load() -> str:
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
