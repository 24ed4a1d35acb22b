"""Table of libraries with known threads, some of which a fork survives.

A library counts as fork-safe when it was measured to work on both sides of a fork, in forks of
forks, and right after use, from the given version on. A later version is expected to behave alike;
the tests of this table show when one does not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

READ_CALL, _FUTEX, _EPOLL_WAIT = 0, 202, 232
"""Numbers of system calls on x86-64, the only machine on which threads are attributed."""
_JEMALLOC = "jemalloc_bg_thd"


@dataclass(frozen=True, slots=True)
class ForkingLibrary:
    """A library with threads that a fork survives while idle.

    Attributes:
        name: Its name in messages.
        package: Python package that brings it.
        file: Pattern of its file, from the folder that holds the package.
        since: Least version of the package.
        waits: System calls in which its idle threads sleep. A ``read`` is one only on a pipe
            with both ends in this process.
        threads: Names of the only threads allowed; empty for all.
    """

    name: str
    package: str
    file: str
    since: tuple[int, ...]
    waits: frozenset[int] = frozenset({_FUTEX})
    threads: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RefusedLibrary:
    """A library with threads that break a fork.

    Attributes:
        name: Its name in messages.
        file: Pattern of its file's name.
        reason: Sentence in place of the number of its threads; empty for that.
        remedy: Advice for the user, for the case that no variable is to blame.
        holder: Module and class of the objects that keep its threads running.
        remedy_of_holder: Advice before the names of the variables that hold them.
    """

    name: str
    file: str
    reason: str = ""
    remedy: str = ""
    holder: tuple[str, str] | None = None
    remedy_of_holder: str = ""


FORKING = (
    ForkingLibrary(
        "Arrow",
        "pyarrow",
        r"pyarrow/libarrow\.so[.\d]*",
        (26, 0),
        frozenset({_FUTEX, READ_CALL}),
    ),
    ForkingLibrary("OpenBLAS", "numpy", r"numpy\.libs/libscipy_openblas[^/]*\.so", (2, 4)),
    ForkingLibrary("OpenBLAS", "scipy", r"scipy\.libs/libscipy_openblas[^/]*\.so", (1, 17)),
    ForkingLibrary("SciPy", "scipy", r"scipy/fft/_pocketfft/pypocketfft\.[^/]*so", (1, 17)),
    ForkingLibrary("numexpr", "numexpr", r"numexpr/interpreter\.[^/]*so", (2, 14)),
    ForkingLibrary("Numba", "numba", r"numba/np/ufunc/workqueue\.[^/]*so", (0, 68)),
    ForkingLibrary(
        "ZeroMQ",
        "zmq",
        r"pyzmq\.libs/libzmq[^/]*\.so[.\d]*",
        (27, 0),
        frozenset({_FUTEX, _EPOLL_WAIT}),
    ),
    ForkingLibrary(
        "polars",
        "polars",
        r"_polars_runtime_\w+/_polars_runtime\.[^/]*so",
        (2, 1),
        threads=frozenset({"polars-ooc-clea", _JEMALLOC}),
    ),
)
REFUSED = (
    RefusedLibrary(
        "DuckDB",
        r"_?duckdb\..*",
        remedy="call `duckdb.close()` and close all connections",
        holder=("duckdb", "DuckDBPyConnection"),
        remedy_of_holder="close the connection",
    ),
    RefusedLibrary(
        "polars",
        r"_?polars.*",
        reason="polars ran a query in this kernel: its threads do not survive a fork",
    ),
    RefusedLibrary("OpenMP", r"lib(gomp|omp|iomp).*"),
    RefusedLibrary("TBB", r"(libtbb|tbbpool).*"),
    RefusedLibrary("MKL", r"libmkl.*"),
    RefusedLibrary(
        "torch",
        r"libtorch.*",
        reason="torch has threads of its own (autograd): they do not survive a fork",
    ),
)


def forking(path: str, names: Iterable[str]) -> ForkingLibrary | None:
    """Return the fork-safe library that a file belongs to, or None.

    The same file elsewhere than in the loaded package is unknown.
    """
    library = _known(path)
    if library is None or _version(library.package) < library.since:
        return None
    return library if not library.threads or library.threads.issuperset(names) else None


def refused(path: str) -> RefusedLibrary:
    """Return the library of a file that breaks a fork, or one made of the file's own name."""
    name, known = Path(path).name, _known(path)
    if known is not None and _version(known.package) < known.since:
        least = ".".join(map(str, known.since))
        remedy = f"a fork needs {known.package} {least} or later"
        return RefusedLibrary(known.name, known.file, remedy=remedy)
    for library in REFUSED:
        if re.fullmatch(library.file, name):
            return library
    return RefusedLibrary(f"the library {path}", "")


def _known(path: str) -> ForkingLibrary | None:
    for library in FORKING:
        root = _root(library.package)
        if root is None or not Path(path).is_relative_to(root):
            continue
        if re.fullmatch(library.file, str(Path(path).relative_to(root))):
            return library
    return None


def _root(package: str) -> Path | None:
    """Return the folder from which a loaded package was imported."""
    module: Any = sys.modules.get(package)
    file = getattr(module, "__file__", None)
    return _resolved(file).parent.parent if isinstance(file, str) else None


@cache
def _resolved(file: str) -> Path:
    return Path(file).resolve()


def _version(package: str) -> tuple[int, ...]:
    module: Any = sys.modules.get(package)
    found = re.match(r"\d+(\.\d+)*", str(getattr(module, "__version__", "")))
    return tuple(map(int, found[0].split("."))) if found else ()
