"""Open files, sockets and mappings that a fork would share or lose."""

from __future__ import annotations

import fcntl
import gc
import io
import os
import re
import resource
import socket
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from taskweaver.ces.inkernel.forking.rest import holders, names_of
from taskweaver.ces.inkernel.process import is_only_read, open_files

_MAPPING = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+ *(.*)$", re.MULTILINE)
_SHARED_MAPPING = re.compile(rb"^\S+ rw-s \S+ \S+ \S+ +(.+)$", re.MULTILINE)
_LIBRARY_MAPPING = re.compile(rb"^\S+ r-xp \S+ \S+ \S+ +(/.*/[^/\n]*\.so[^/\n]*)$", re.MULTILINE)
_HTTPCORE = ("httpcore", "httpcore2")
_PASSING_FILES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/pts/", "/proc/")
_GPUS = ("/dev/nvidia", "/dev/kfd")
_PASSING_MAPPINGS = ("/dev/shm/sem.", "/dev/zero", "anon_inode:", "/memfd:doublemapper")
_FILES = {io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom, io.FileIO}


@dataclass(frozen=True, slots=True)
class MappedRange:
    """One range of addresses.

    Attributes:
        start: First address.
        end: First address behind it.
        access: Permissions in the form of ``/proc/self/maps``, e.g. ``r-xp``.
        path: Mapped file; empty for anonymous memory.
    """

    start: int
    end: int
    access: str
    path: str


class Mappings:
    """A snapshot of ``/proc/self/maps``, of which each view is parsed when first used."""

    def __init__(self) -> None:
        self._text = Path("/proc/self/maps").read_bytes()

    def reasons(self) -> Iterator[str]:
        """Yield the files whose mappings both sides of a fork would write to."""
        for path in sorted(set(map(_decoded, _SHARED_MAPPING.findall(self._text)))):
            if not path.startswith(_PASSING_MAPPINGS):
                yield f"the file {path} is mapped for writing"

    def libraries(self) -> set[str]:
        """Return the paths of the loaded shared libraries."""
        return set(map(_decoded, _LIBRARY_MAPPING.findall(self._text)))

    def at(self, address: int) -> MappedRange | None:
        """Return the mapping that holds an address."""
        starts, all_of_them = self._index
        place = bisect_right(starts, address) - 1
        if place < 0 or address >= all_of_them[place].end:
            return None
        return all_of_them[place]

    @cached_property
    def _index(self) -> tuple[list[int], list[MappedRange]]:
        found = [
            MappedRange(int(start, 16), int(end, 16), access.decode("ascii"), _decoded(path))
            for start, end, access, path in _MAPPING.findall(self._text)
        ]
        return [mapping.start for mapping in found], found


def _decoded(path: bytes) -> str:
    return path.decode("utf-8", "replace")


def idle_sockets() -> set[int]:
    """Return the file numbers of all sockets in the pools of urllib3 and httpcore that are idle.

    A forked process sees such a connection as dropped by the server, and connects anew. The search
    looks through all objects, so call it only when there is a socket to explain.
    """
    # By identity: a class may forbid that it is hashed.
    kinds = {id(kind): numbers for kind, numbers in _kinds()}
    if not kinds:
        return set()
    found = set[int]()
    for thing in gc.get_objects():
        numbers = kinds.get(id(type(thing)))
        if numbers is None:
            continue
        try:
            found.update(numbers(thing))
        except (AttributeError, OSError, TypeError, ValueError):
            continue  # another version of the library, or a closed socket: it stays unexplained
    return found - {-1}


def _kinds() -> Iterator[tuple[type, Callable[[Any], Iterator[int]]]]:
    urllib3: Any = sys.modules.get("urllib3")
    if urllib3 is not None:
        yield urllib3.HTTPConnectionPool, _of_urllib3
        yield urllib3.HTTPSConnectionPool, _of_urllib3
    for name in _HTTPCORE:
        httpcore: Any = sys.modules.get(name)
        if httpcore is not None:
            yield httpcore.ConnectionPool, _of_httpcore


def _of_urllib3(pool: Any) -> Iterator[int]:
    # A connection in use is not in the queue.
    for connection in list(pool.pool.queue if pool.pool is not None else ()):
        if connection is not None and connection.sock is not None:
            yield connection.sock.fileno()


def _of_httpcore(pool: Any) -> Iterator[int]:
    for connection in pool.connections:
        if connection.is_idle():
            stream = connection._connection._network_stream  # noqa: SLF001 - no public name
            yield stream.get_extra_info("socket").fileno()


class OpenFiles:
    """Distinction between the kernel's own files and files that the user's code opened."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        """Record the open files, before any code of the user ran."""
        self._namespace = namespace
        self._own = open_files()
        self._addresses = {
            _address(fd) for fd, link in self._own.items() if link.startswith("socket:")
        }

    def reasons(self, read_pipes: set[str]) -> Iterator[str]:
        """Yield the files that make a fork unsafe, a phrase each.

        Args:
            read_pipes: Links of pipes that a library's threads read; both ends are in this process.
        """
        files = open_files()
        if len(files) > resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2:
            # Each fork keeps the numbers of its parent's files.
            yield f"{len(files)} files are open, or it was forked from forks too often"
        new = {fd: link for fd, link in files.items() if self._own.get(fd) != link}
        if any(link.startswith(_GPUS) for link in new.values()):
            yield "the GPU is in use"
            return
        if self._unexplained_sockets(new):
            yield "a network connection or socket is open"
        for fd, link in new.items():
            if link.startswith(("anon_inode:", "socket:", *_PASSING_FILES)) or link in read_pipes:
                continue
            if link.startswith("pipe:"):
                yield "a pipe to another process is open"
            elif not is_only_read(fd):
                yield f"the file {link} is open for writing{self._advice_for_file(fd)}"

    def _unexplained_sockets(self, files: Mapping[int, str]) -> set[int]:
        sockets = {
            fd
            for fd, link in files.items()
            if link.startswith("socket:") and _address(fd) not in self._addresses
        }
        return sockets - idle_sockets() if sockets else sockets

    def _advice_for_file(self, fd: int) -> str:
        names = [
            f"`{name}`"
            for name, file in holders(self._namespace, "_io", "_IOBase")
            if type(file) in _FILES and _is_open_at(file, fd)
        ]
        if names:
            return f": close the file {', '.join(names)}"
        connections = names_of(self._namespace, "sqlite3", "Connection")
        return f": close the connection {connections}" if connections else ""


def own_pipe(fd: int) -> str | None:
    """Return the link of a pipe that is read through a number and written to by this process."""
    files = open_files()
    link = files.get(fd, "")
    if not link.startswith("pipe:"):
        return None
    ends = [fcntl.fcntl(end, fcntl.F_GETFL) for end, its_link in files.items() if its_link == link]
    return link if {os.O_RDONLY, os.O_WRONLY} <= {end & os.O_ACCMODE for end in ends} else None


def _is_open_at(file: Any, fd: int) -> bool:
    try:
        return bool(file.fileno() == fd)
    except ValueError:  # closed or detached
        return False


def _address(fd: int) -> object:
    """Return the address of a socket. An accepted connection has the listener's."""
    with socket.socket(fileno=os.dup(fd)) as copy:
        return copy.getsockname() or f"unbound {fd}"
