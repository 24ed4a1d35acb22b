"""Facts about the machine: asked of the system, never read out of prose.

Modules that are slow to import are imported by the functions that ask: only runs need them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.run.ingest import keep_record

Fact = str | int | list[str]
ENVIRONMENT_TAG = "ENVIRONMENT"
_HASH = "environment_hash"
_COMPILERS = ("gcc", "g++", "gfortran", "clang", "nvcc", "icx", "rustc")
_TOOLS = ("make", "cmake", "ninja", "git", "mpirun", "perf", "docker", "singularity", "python3")
_PACKAGES = (
    "numpy", "scipy", "pandas", "scikit-learn", "matplotlib", "seaborn", "statsmodels", "networkx",
    "sympy", "numba", "polars", "xgboost", "lightgbm", "torch", "tensorflow", "jax", "transformers",
)  # fmt: skip
_VARIABLES = ("OMP_", "KMP_", "GOMP_", "MKL_NUM", "OPENBLAS_NUM", "CUDA_VISIBLE", "SLURM_")
_SIMD = re.compile(r"(?:sse4_|avx|fma$|f16c|amx|asimd|sve|neon)")
_VERSION_TIMEOUT_S = 5.0


def collect_environment() -> dict[str, Fact]:
    """Return facts about this machine; unknown ones are left out.

    Keys: ``os``, ``kernel``, ``machine``, ``cpu``, ``cpus`` (usable by this process),
    ``caches`` (of one core), ``simd``, ``memory_mib``, ``numa_nodes``, ``gpus``, ``compilers``,
    ``tools``, ``variables``, ``container``, ``python``, ``python_packages`` (well-known ones).
    """
    import platform

    found: dict[str, Fact | None] = {
        "os": _os_name(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _field(Path("/proc/cpuinfo"), "model name") or platform.processor(),
        "cpus": _usable_cpus(),
        "memory_mib": _memory_mib(),
        "caches": _caches(),
        "simd": _simd(),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))),
        "gpus": _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader"),
        "compilers": _versions(_COMPILERS),
        "tools": _versions(_TOOLS),
        "variables": sorted(
            f"{name}={value}" for name, value in os.environ.items() if name.startswith(_VARIABLES)
        ),
        "container": "yes" if _is_container() else "",
        "python": platform.python_version(),
        "python_packages": list(_packages()),
    }
    return {name: value for name, value in found.items() if value}


def ingest_environment(branch: BranchHandle, facts: Mapping[str, Fact] | None = None) -> bool:
    """Keep facts about the machine in a record, the main ones in core memory; return if new.

    Of a run, the branch is its root. Without `facts`, they are those of this machine.

    Raises:
        BranchSealed: If the branch takes no writes.
    """
    facts = collect_environment() if facts is None else facts
    text = json.dumps(dict(facts), ensure_ascii=False, indent=2, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    if branch.core.get(_HASH) == digest:
        return False
    keep_record(branch, text, [ENVIRONMENT_TAG], {})
    cpu = [str(facts.get("cpu", "")), f"{facts['cpus']} usable" if "cpus" in facts else ""]
    memory_gib = facts.get("memory_mib")
    if isinstance(memory_gib, int):
        cpu.append(f"{memory_gib / 1024:.0f} GiB")
    core = {
        "hardware_cpu": ", ".join(filter(None, cpu)),
        "hardware_gpu": _joined(facts.get("gpus")),
        "hardware_os": " ".join(str(facts[key]) for key in ("os", "kernel") if key in facts),
        "hardware_compiler": _joined(facts.get("compilers")),
        "hardware_tools": _joined(facts.get("tools")),
    }
    for key, value in core.items():
        if value:
            branch.core.set(key, value, importance=4)
    branch.core.set(_HASH, digest, importance=5)
    return True


def _joined(value: Fact | None) -> str:
    return "; ".join(value) if isinstance(value, list) else str(value or "")


def _os_name() -> str:
    import platform

    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _field(path: Path, name: str) -> str:
    """Return the first value of ``name : value`` in a file of the system."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    pairs = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in pairs if key.strip() == name), "")


def _usable_cpus() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _caches() -> list[str]:
    """Return level, type and size of the caches of the first core, as in ``L1 Data 32K``."""
    found = []
    for place in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        with suppress(OSError):
            level, kind, size = ((place / n).read_text().strip() for n in ("level", "type", "size"))
            found.append(f"L{level} {kind} {size}")
    return found


def _simd() -> list[str]:
    """Return the vector instructions of the processor, by the system's names."""
    cpuinfo = Path("/proc/cpuinfo")
    flags = (_field(cpuinfo, "flags") or _field(cpuinfo, "Features")).split()
    return [flag for flag in flags if _SIMD.match(flag)]


def _memory_mib() -> int | None:
    size = _field(Path("/proc/meminfo"), "MemTotal").removesuffix("kB").strip()
    return int(size) // 1024 if size.isdigit() else None


def _versions(names: tuple[str, ...]) -> list[str]:
    import shutil

    found = []
    for name in names:
        program = shutil.which(name)
        if program:
            version_line = _version_line(program)
            found.append(f"{name}: {version_line}" if version_line else name)
    return found


@cache  # a program stays what it is while this one runs
def _version_line(program: str) -> str:
    return next(iter(_output(program, "--version")), "")


@cache
def _packages() -> tuple[str, ...]:
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return tuple(found)


def _output(*command: str) -> list[str]:
    """Return the lines a program prints; none when it is not there, fails or takes too long."""
    import shutil
    import subprocess

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
