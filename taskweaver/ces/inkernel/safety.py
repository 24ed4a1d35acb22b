"""Whether this kernel can be forked: what does not survive a fork, or would be shared after it."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from taskweaver.ces.inkernel.birth import is_only_read

# Threads of libraries that close and reopen their pools around a fork by themselves.
_HARMLESS = ("ZMQbg/", "jemalloc_bg")
_PAUSE_HARD = 2
"""``omp_pause_hard`` of OpenMP 5.0, section 3.6.2: give up all threads."""
_PASSING_FILES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/pts/", "/proc/")
_SEMAPHORES = "/dev/shm/sem."


class ForkSafety:
    """Knows what belongs to the kernel itself; all else is the code's."""

    def __init__(self) -> None:
        """Take note of the threads and files there are; call it before any code of others ran."""
        self._threads: set[int | None] = {thread.native_id for thread in threading.enumerate()}
        self._files = dict(_open_files())
        self._addresses = {
            _address(fd) for fd, target in self._files.items() if target.startswith("socket:")
        }

    def reasons(self) -> list[str]:
        """Return why a fork would be unsafe now, a phrase each; empty when it is safe."""
        _rest_native_pools()
        return [*self._thread_reasons(), *self._file_reasons(), *_mapping_reasons()]

    def _thread_reasons(self) -> Iterator[str]:
        # A forked process keeps its parent's number of the main thread (Python 3.11).
        ours = self._threads | {os.getpid()}
        for thread in threading.enumerate():
            if thread.native_id not in ours:
                ours.add(thread.native_id)
                yield f"the thread {thread.name!r} is running"
        foreign = {
            id_: name
            for id_, name in _native_threads()
            if id_ not in ours and not name.startswith(_HARMLESS)
        }
        if foreign:
            names = ", ".join(sorted(set(foreign.values())))
            yield f"{len(foreign)} native threads of a library are running ({names})"

    def _file_reasons(self) -> Iterator[str]:
        files = list(_open_files())
        if len(files) > resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2:
            # Each fork keeps the numbers of its parent's files.
            yield f"{len(files)} files are open, or it was forked from forks too often"
        for fd, target in files:
            if self._files.get(fd) == target or target.startswith(("anon_inode:", *_PASSING_FILES)):
                continue
            if target.startswith(("/dev/nvidia", "/dev/kfd")):
                yield "the GPU is in use"
                return
            if target.startswith("socket:"):
                if _address(fd) not in self._addresses:
                    yield "a network connection or socket is open"
            elif target.startswith("pipe:"):
                yield "a pipe to another process is open"
            elif not is_only_read(fd):
                yield f"the file {target} is open for writing"


def _address(fd: int) -> object:
    """Return where a socket is bound; a connection has the address it was accepted at."""
    with socket.socket(fileno=os.dup(fd)) as copy:
        return copy.getsockname() or f"unbound {fd}"


def _native_threads() -> Iterator[tuple[int, str]]:
    for folder in Path("/proc/self/task").iterdir():
        try:
            yield int(folder.name), (folder / "comm").read_text().strip()
        except OSError:
            continue  # ended meanwhile


def _open_files() -> Iterator[tuple[int, str]]:
    for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - numbers are wanted
        try:
            yield fd, os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - a text is wanted
        except OSError:
            continue  # the listing's own, closed by now


def _mapping_reasons() -> Iterator[str]:
    """Files that are mapped so that both sides would write into them."""
    lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    shared = {path for access, path in _mappings(lines) if access == "rw-s"}
    for path in sorted(shared):
        if not path.startswith((_SEMAPHORES, "/dev/zero", "anon_inode:", "/memfd:doublemapper")):
            yield f"the file {path} is mapped for writing"


def _mappings(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        fields = line.split(maxsplit=5)
        if len(fields) == 6:
            yield fields[1], fields[5]


def _rest_native_pools() -> None:
    """Have OpenBLAS and OpenMP end their idle threads; they start them again when needed."""
    lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    paths = {path for _, path in _mappings(lines) if ".so" in Path(path).name}
    for path in paths:
        name = Path(path).name
        if "blas" in name:
            _call(path, "blas_thread_shutdown_")
        elif "omp" in name:
            _call(path, "omp_pause_resource_all", _PAUSE_HARD)


def _call(path: str, function: str, *arguments: int) -> None:
    try:
        found: Callable[..., Any] = getattr(ctypes.CDLL(path), function)
    except (OSError, AttributeError):
        return  # another build of the library: its threads, if any, are found and said
    found(*arguments)
