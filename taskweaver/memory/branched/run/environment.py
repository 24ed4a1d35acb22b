"""Facts about the machine: asked of the system, never read out of prose.

Modules that are slow to import are imported by the functions that ask: only runs need them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.run import hardware
from taskweaver.memory.branched.run.ingest import keep_record

Fact = str | int | list[str]
ENVIRONMENT_TAG = "ENVIRONMENT"
PASSING_FACTS = frozenset({"load", "memory_copy"})
"""Names of facts that differ from look to look: a memory that keeps them would soon be untrue."""
_HASH = "environment_hash"
_COMPILERS = ("gcc", "g++", "gfortran", "clang", "icx", "rustc")
_TOOLS = ("make", "cmake", "ninja", "git", "mpirun", "perf", "docker", "singularity", "python3")
_PACKAGES = (
    "numpy", "scipy", "pandas", "scikit-learn", "matplotlib", "seaborn", "statsmodels", "networkx",
    "sympy", "numba", "polars", "xgboost", "lightgbm", "torch", "tensorflow", "jax", "transformers",
)  # fmt: skip
_VARIABLES = ("OMP_", "KMP_", "GOMP_", "MKL_NUM", "OPENBLAS_NUM", "CUDA_VISIBLE", "SLURM_")
_VERSION_TIMEOUT_S = 5.0


def collect_environment() -> dict[str, Fact]:
    """Return facts about this machine; unknown ones are left out.

    Keys: ``os``, ``kernel``, ``machine``, ``cpu``, ``cpus`` (usable by this process),
    ``caches`` (of one core), ``simd``, ``memory_mib``, ``numa_nodes``, ``huge_pages``, ``load``,
    ``gpus``, ``compilers`` (``nvcc`` beside a GPU only), ``tools``, ``variables``, ``container``,
    ``python``, ``python_packages`` (well-known ones).
    """
    import platform

    gpus = _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    found: dict[str, Fact | None] = {
        "os": _os_name(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": hardware.cpu_model() or platform.processor(),
        "cpus": _usable_cpus(),
        "memory_mib": hardware.memory_mib(),
        "caches": hardware.caches(),
        "simd": hardware.simd(),
        "numa_nodes": hardware.numa_nodes(),
        "huge_pages": hardware.huge_pages(),
        "load": hardware.load(),
        "gpus": gpus,
        "compilers": _versions((*_COMPILERS, "nvcc") if gpus else _COMPILERS),
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
    facts = {name: value for name, value in facts.items() if name not in PASSING_FACTS}
    text = json.dumps(facts, ensure_ascii=False, indent=2, sort_keys=True)
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


def _usable_cpus() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


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
    """Return the line that says a program's version; nvcc has it below its name."""
    lines = _output(program, "--version")
    return next((line for line in lines if "release" in line), next(iter(lines), ""))


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
