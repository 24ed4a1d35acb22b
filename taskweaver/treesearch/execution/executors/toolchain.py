"""The programs of a machine: those on its path, and the versions of compilers and MPI among them.

Any program on the path may compile; the patterns choose the ones that prompts show.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from functools import cache

_VERSION = r"(?:-?\d+(?:\.\d+)*)?"
_COMPILER = re.compile(
    r"(?:gcc|g\+\+|gfortran|clang|clang\+\+|flang|flang-new|cc|c\+\+|CC|ftn|icx|icpx|ifx|icc|icpc"
    r"|ifort|dpcpp|nvc|nvc\+\+|nvfortran|hipcc|amdclang|amdclang\+\+|amdflang|armclang|armclang\+\+"
    r"|armflang|xlc|xlf|pgcc|pgfortran|rustc|go|julia|zig|ghc|javac|swiftc|nim|crystal|dmd|ldc2|gdc"
    r"|ocamlopt|fpc|gnatmake|mpi(?:cc|cxx|c\+\+|CC|f77|f90|fort|icc|icpc|ifort|icx|icpx|ifx)|h5cc"
    rf"|mpirun|mpiexec|srun|nvcc){_VERSION}"
)
_ALIASES = frozenset({"cc", "c++"})
_QUESTIONS = (("--version",), ("version",), ("-version",))
_TIMEOUT_S = 5.0


def programs() -> frozenset[str]:
    """Return the names of all programs on the path."""
    found: set[str] = set()
    for folder in os.get_exec_path():
        with suppress(OSError), os.scandir(folder) as entries:
            found |= {e.name for e in entries if os.access(e.path, os.X_OK) and e.is_file()}
    return frozenset(found)


def compilers(there: Iterable[str], *, has_gpus: bool) -> tuple[str, ...]:
    """Return compilers and launchers of MPI among programs, nvcc only beside a card."""
    names = sorted(name for name in there if _COMPILER.fullmatch(name))
    return tuple(name for name in names if has_gpus or not name.startswith("nvcc"))


def versions(names: Iterable[str]) -> list[str]:
    """Return each program with its version; a file of several names has the most telling one."""
    by_file: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (name in _ALIASES, len(name), name)):
        path = shutil.which(name)
        if path is not None:
            by_file.setdefault(os.path.realpath(path), name)
    found = sorted(by_file.values())
    return [f"{name}: {line}" if (line := _line(name)) else name for name in found]


@cache  # a program stays what it is while this one runs
def _line(name: str) -> str:
    """Return the line that says the version of a program; empty where it says none."""
    for question in _QUESTIONS:
        try:
            done = subprocess.run(
                [name, *question],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_TIMEOUT_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
        telling = [line for line in lines if "release" in line] or lines or [""]
        return telling[0].strip()
    return ""
