"""Check for the threads, files and mappings of this kernel that a fork would break.

A fork copies memory and files, but only the thread that asks for it. Threads are judged by the
library that owns them, `files` judges open files, and `rest` stops the pools that start again by
themselves.

A library in the table counts as fork-safe when it was measured to work on both sides of a fork, in
forks of forks, and right after use, from the given version on. A later version is expected to
behave alike; the tests of the table show when one does not.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

from taskweaver.ces.inkernel.forking.files import Mappings, OpenFiles, own_pipe
from taskweaver.ces.inkernel.forking.rest import names_of, rest_native_pools, rest_python_libraries
from taskweaver.ces.inkernel.forking.threads import (
    NativeThread,
    ThreadKey,
    ThreadOwners,
    layout,
    system_call,
    thread,
    thread_ids,
    voluntary_switches,
)
from taskweaver.utils.text import counted

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


_OWN_POOLS = ("ZMQbg/",)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.032
_END_WAIT_S = 0.1
_BUSY_WAIT_S = 1.0
_IDLE_S = 0.002
_RUNNING = {"R", "D"}


@dataclass(slots=True)
class _Verdicts:
    """Result of one look at all foreign threads.

    Attributes:
        python: Refused threads that Python knows, with the reason for each.
        native: Other refused threads by the file that owns them; None for an unknown owner.
        busy: Threads of libraries that fork, not seen idle yet, by the library's name.
        pipes: Links of the pipes that idle threads read.
    """

    python: dict[ThreadKey, str] = field(default_factory=dict)
    native: dict[str | None, list[NativeThread]] = field(default_factory=dict)
    busy: dict[str, list[NativeThread]] = field(default_factory=lambda: defaultdict(list))
    pipes: set[str] = field(default_factory=set)


class ForeignThreads:
    """Finder of the threads that a fork would break. An unknown thread always is a reason.

    Attributes:
        read_pipes: Links of the pipes that idle threads of a library read; set by `reasons`.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        """Record the kernel's own threads, before any code of the user ran."""
        self._namespace = namespace
        self._own = {one.native_id for one in threading.enumerate()}
        for id_ in thread_ids():
            found = thread(id_)
            if found is not None and found.name.startswith(_OWN_POOLS):
                self._own.add(id_)
        self._owners = ThreadOwners()
        self._is_calibrated = False
        self._idle_looks: dict[ThreadKey, tuple[int, float]] = {}
        self._waited_for = set[ThreadKey]()
        self.read_pipes = set[str]()

    def exist(self) -> bool:
        """Return whether there is any thread beside the kernel's own."""
        self.read_pipes = set()
        return any(id_ not in self._all_own() for id_ in thread_ids())

    def reasons(self, mappings: Mappings) -> list[str]:
        """Return the threads that make a fork unsafe, a phrase each.

        A thread that ends right now is waited for up to 0.1 s, a busy pool of a library that
        forks for up to 1 s. Threads that were waited for in an earlier request are not again.
        """
        # A calibration that failed is tried again, once per request.
        self._is_calibrated = self._owners.layout is not None
        pause, pause_s, began = threading.Event(), _FIRST_PAUSE_S, monotonic()
        while True:
            verdicts = self._look(mappings)
            keys = set(verdicts.python) | _keys(verdicts.native.values())
            busy = _keys(verdicts.busy.values())
            if not self._is_worth_waiting(keys, busy, monotonic() - began):
                if keys:
                    verdicts.busy.clear()  # not waited for: whether they would rest is unknown
                self._waited_for = keys or busy
                self.read_pipes = verdicts.pipes
                return list(self._texts(verdicts))
            pause.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _is_worth_waiting(
        self, refused: set[ThreadKey], busy: set[ThreadKey], elapsed_s: float
    ) -> bool:
        if refused:
            return elapsed_s < _END_WAIT_S and not refused <= self._waited_for
        limit_s = _END_WAIT_S if busy <= self._waited_for else _BUSY_WAIT_S
        return bool(busy) and elapsed_s < limit_s

    def _all_own(self) -> set[int | None]:
        # A forked process keeps its parent's number of the main thread (Python 3.11).
        return self._own | {os.getpid()}

    def _look(self, mappings: Mappings) -> _Verdicts:
        own = self._all_own()
        verdicts = _Verdicts()
        # A thread of a library that ran Python code is listed here, too: judged as the library's.
        started = [
            one
            for one in threading.enumerate()
            if not isinstance(one, threading._DummyThread)  # noqa: SLF001
        ]
        for ident in sys._current_frames().keys() - {one.ident for one in started}:  # noqa: SLF001
            callback = NativeThread(ident, "python", 0, "S", is_ending=False)
            verdicts.busy["Python code called by a library"].append(callback)
        for one in started:
            if one.native_id not in own:
                found = thread(one.native_id) if one.native_id else None
                key = (one.native_id or 0, found.start_time if found else 0)
                own.add(one.native_id)
                verdicts.python[key] = self._python_reason(one)
        natives = [found for id_ in thread_ids() if id_ not in own and (found := thread(id_))]
        present = _keys([natives])
        self._owners.forget_all_but(present)
        self._idle_looks = {key: self._idle_looks[key] for key in self._idle_looks.keys() & present}
        groups = defaultdict[str | None, list[NativeThread]](list)
        for native in natives:
            if not native.is_ending:
                groups[self._owner(native, mappings)].append(native)
        for path, group in groups.items():
            library = forking(path, {one.name for one in group}) if path else None
            if path is None and all(one.state in _RUNNING for one in group):
                # The owner shows once they sleep.
                verdicts.busy["an unknown library"] += group
                continue
            if library is None:
                verdicts.native[path] = group
                continue
            busy = [one for one in group if not self._is_idle(one, library, verdicts.pipes)]
            if busy:
                verdicts.busy[library.name] += busy
        return verdicts

    def _owner(self, native: NativeThread, mappings: Mappings) -> str | None:
        if not self._is_calibrated:
            self._is_calibrated = True
            self._owners.layout = layout(mappings)
        return self._owners.owner(native, mappings)

    def _is_idle(self, one: NativeThread, library: ForkingLibrary, pipes: set[str]) -> bool:
        """Return whether a thread slept in the same place at two looks."""
        call, switches = system_call(one.id), voluntary_switches(one.id)
        if one.state != "S" or call is None or switches is None or call.number not in library.waits:
            return False
        now, key = monotonic(), (one.id, one.start_time)
        before = self._idle_looks.get(key)
        if before is None or before[0] != switches:
            self._idle_looks[key] = (switches, now)
            return False
        if call.number == READ_CALL:
            link = own_pipe(call.first_argument)
            if link is None:
                return False
            pipes.add(link)
        return now - before[1] >= _IDLE_S

    def _texts(self, verdicts: _Verdicts) -> Iterator[str]:
        yield from verdicts.python.values()
        counts = Counter[RefusedLibrary]()
        for path, group in verdicts.native.items():
            if path is None:
                names = ", ".join(sorted({one.name for one in group}))
                yield f"{counted(len(group), 'thread')} of an unknown library are running ({names})"
            else:
                counts[refused(path)] += len(group)
        for library, count in counts.items():
            yield self._library_text(library, count)
        for name, group in verdicts.busy.items():
            yield f"{name} is still working in {counted(len(group), 'thread')}"

    def _library_text(self, library: RefusedLibrary, count: int) -> str:
        held_by = names_of(self._namespace, *library.holder) if library.holder else ""
        remedy = f"{library.remedy_of_holder} {held_by}" if held_by else library.remedy
        reason = library.reason or f"{library.name} has {counted(count, 'thread')}"
        return f"{reason}: {remedy}" if remedy else reason

    def _python_reason(self, one: threading.Thread) -> str:
        kind, name = type(one), f"the thread {one.name!r}"
        if "loky" in kind.__module__:
            return "joblib's worker processes are running: use its threads, `prefer='threads'`"
        target: Any = getattr(one, "_target", None)
        if "concurrent.futures" in f"{kind.__module__} {getattr(target, '__module__', '')}":
            names = names_of(self._namespace, "concurrent.futures", "Executor")
            executor = f"the executor {names}" if names else "its executor"
            return f"{name} is running: shut down {executor}"
        if getattr(target, "__qualname__", "") == "QueueListener._monitor":
            names = names_of(self._namespace, "logging.handlers", "QueueListener")
            return f"{name} is running: stop the QueueListener {names}".rstrip()
        return f"{name} is running"


def _keys(groups: Iterable[list[NativeThread]]) -> set[ThreadKey]:
    return {(one.id, one.start_time) for group in groups for one in group}


class ForkSafety:
    """Fork check that separates the kernel's own threads and files from user code's."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        """Record the present threads and files, before any code of the user ran."""
        self._namespace = namespace
        self._threads = ForeignThreads(namespace)
        self._files = OpenFiles(namespace)

    def reasons(self) -> list[str]:
        """Return a phrase for each reason why a fork would be unsafe now.

        Each names the library, the variable where it is known, and the remedy.
        """
        rest_python_libraries(self._namespace)
        mappings, threads = Mappings(), list[str]()
        if self._threads.exist():
            rest_native_pools(mappings.libraries())
            threads = self._threads.reasons(mappings)
        files = self._files.reasons(self._threads.read_pipes)
        return [*threads, *files, *mappings.reasons()]
