"""The machine that runs jobs: facts about it, its GPUs, and the probe that a worker makes.

Facts are asked of the system and its files, never read out of prose. Any program on the path may
compile: a pattern chooses those that prompts show.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from time import perf_counter

import psutil

from taskweaver import __version__
from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.ces.limits import half_of_memory
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.sandbox import SandboxRequest

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
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
_COPIED_BYTES = 64 << 20
_COPIES = 3
VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
"""Names the GPUs of a process, by numbers or UUIDs; AMD's programs read it too."""
_DEV = Path("/dev")
_DRIVER = Path("/proc/driver/nvidia/gpus")  # NVIDIA's driver describes its GPUs there
_GPU_SHARED = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_GPU_DEVICES = ("nvidia[0-9]*", "nvidia-caps/*", "kfd", "dri/renderD*")
_KIND_FACTS = (
    "machine", "cpu", "cpus", "caches", "simd", "numa_nodes", "gpus", "compilers", "python",
    "python_packages",
)  # fmt: skip
"""Facts that a measurement depends on: workers that differ in one are of different kinds."""


def collect_environment() -> dict[str, Fact]:
    """Return facts about this machine. Unknown facts are left out.

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
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mib": psutil.virtual_memory().total >> 20,
        "caches": _caches(),
        "simd": _simd(),
        "numa_nodes": _numa_nodes(),
        "huge_pages": _huge_pages(),
        "load": f"{os.getloadavg()[0]:.1f} tasks in the minute before the start",
        "gpus": gpus,
        "compilers": _versions(compilers(programs(), has_gpus=bool(gpus))),
        "tools": _versions(_TOOLS),
        "variables": sorted(
            f"{name}={value}" for name, value in os.environ.items() if name.startswith(_VARIABLES)
        ),
        "container": "yes" if any(Path(mark).exists() for mark in _CONTAINER_MARKS) else "",
        "python": platform.python_version(),
        "python_packages": list(_packages()),
    }
    return {name: value for name, value in found.items() if value}


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


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
    """Return each program with its version. A file of several names has the most telling one."""
    by_file: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (name in _ALIASES, len(name), name)):
        path = shutil.which(name)
        if path is not None:
            by_file.setdefault(os.path.realpath(path), name)
    found = sorted(by_file.values())
    return [f"{name}: {line}" if (line := _version_line(name)) else name for name in found]


@cache  # a program stays what it is while this one runs
def _version_line(name: str) -> str:
    """Return the line with a program's version, which nvcc prints below its name."""
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
    """Return the lines that a program prints, empty for a missing, failing or slow program."""
    try:
        printed = subprocess.check_output(
            command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_VERSION_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    lines = printed.decode("utf-8", "replace").splitlines()
    return [line.strip() for line in lines if line.strip()]


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
    """Return the number of CPUs in a file with a list like ``0-3,8``, or 0 where unknown."""
    try:
        ends = (part.partition("-") for part in path.read_text().strip().split(",") if part)
        return sum(int(last or first) - int(first) + 1 for first, _, last in ends)
    except (OSError, ValueError):
        return 0


def _simd() -> list[str]:
    """Return the vector instructions of the processor, by the system's names."""
    flags = (_field(_CPUINFO, "flags") or _field(_CPUINFO, "Features")).split()
    return [flag for flag in flags if _SIMD.match(flag)]


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


def gpus(dev: Path = _DEV, driver: Path = _DRIVER) -> tuple[str, ...]:
    """Return the GPUs that may be used, by UUID where known."""
    known = list(_known(dev, driver))
    named = os.environ.get(VISIBLE_GPUS)
    if named is None:
        return tuple(known)
    return tuple(
        known[int(name)] if name.isdecimal() and int(name) < len(known) else name
        for name in _names(named)
    )


def devices_of(named: str, dev: Path = _DEV, driver: Path = _DRIVER) -> tuple[Path, ...]:
    """Return the devices of GPUs, and those that all programs need which use one.

    Numbers keep their meaning only where all GPUs are there; so numbers and unknown names, as of a
    part of one or one that is not NVIDIA's, bring the devices of all. `VISIBLE_GPUS`
    names the GPUs so; an empty text is none.
    """
    names, known = _names(named), _known(dev, driver)
    if not names:
        return ()
    fitting = [[known[uuid] for uuid in known if uuid.startswith(name)] for name in names]
    own = {device for devices in fitting for device in devices}
    if not all(fitting):
        own = {device for pattern in _GPU_DEVICES for device in dev.glob(pattern)}
    return (*sorted(own), *(dev / name for name in _GPU_SHARED if (dev / name).exists()))


def _names(named: str) -> list[str]:
    """Return the names in a list. -1 ends it."""
    names = (name.strip() for name in named.split(","))
    return [name for name in takewhile(lambda name: not name.startswith("-"), names) if name]


def _known(dev: Path, driver: Path) -> dict[str, Path]:
    """Return the device of each of NVIDIA's GPUs by its UUID, in the order of ``nvidia-smi``."""
    found = {}
    for file in sorted(driver.glob("*/information")):
        lines = (line.partition(":") for line in file.read_text().splitlines())
        facts = {name.strip(): value.strip() for name, _, value in lines}
        device = dev / f"nvidia{facts.get('Device Minor')}"
        if device.exists():  # a container shows what it was not given, too
            found[facts.get("GPU UUID", "")] = device
    return found


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """Facts about a machine that runs jobs.

    Attributes:
        host: Its name.
        environment: The facts that prompts show; see `collect_environment`.
        programs: Names of all programs on its path, any of which may compile.
        gpus: Its GPUs, by UUID where that is known.
        memory_bytes: Memory that a command may use there unless the configuration says otherwise.
        sandbox: Policy of the sandbox that its commands run in; None for none.
        warning: Why the sandbox is not the one that was asked for; empty when it is.
        problem: Why it cannot run jobs of the search; empty when it can.
        version: Version of this package there.
    """

    host: str
    environment: Mapping[str, Fact]
    gpus: tuple[str, ...]
    memory_bytes: int
    sandbox: SandboxPolicy | None
    warning: str = ""
    problem: str = ""
    version: str = __version__
    programs: frozenset[str] = frozenset()

    @property
    def compilers(self) -> tuple[str, ...]:
        """Names of its compilers, those of MPI too."""
        return compilers(self.programs, has_gpus=bool(self.gpus))

    @property
    def kind(self) -> str:
        """Hash of the facts that measurements and commands depend on."""
        tier = self.sandbox.tier if self.sandbox else ""
        facts = [
            *(self.environment.get(name) for name in _KIND_FACTS),
            self.compilers,
            bool(self.gpus),
            tier,
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """The machine in a few words."""
        cpu, cpus = self.environment.get("cpu", "unknown CPU"), self.environment.get("cpus", "?")
        parts = [f"{cpu}, {cpus} usable"]
        parts += [f"{len(self.gpus)} GPUs"] if self.gpus else []
        parts.append(f"sandbox {self.sandbox.tier if self.sandbox else 'none'}")
        return ", ".join(parts)


def probe_machine(request: SandboxRequest, run_dir: Path | None = None) -> WorkerFacts:
    """Return facts about this machine.

    `run_dir` is the folder of a run, which it must be able to see.
    """
    policy, warning, problem = None, "", ""
    try:
        choice = request.choose()
    except SandboxUnavailable as error:
        problem = f"its sandbox does not work: {error.reason}"
    else:
        policy, warning = choice.policy, choice.warning
    if run_dir is not None and not run_dir.is_dir():
        problem = f"it does not see {run_dir}: hosts of a search share its file system"
    environment = collect_environment() | {"memory_copy": copy_rate()}
    return WorkerFacts(
        host=socket.gethostname(),
        environment={name: fact for name, fact in environment.items() if fact},
        gpus=gpus(),
        memory_bytes=half_of_memory(),
        sandbox=policy,
        warning=warning,
        problem=problem,
        programs=programs(),
    )
