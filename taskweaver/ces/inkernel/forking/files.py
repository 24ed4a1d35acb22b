"""Open files, sockets and mappings that a fork would share or lose."""

from __future__ import annotations

import fcntl
import io
import os
import resource
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from taskweaver.ces.inkernel.forking.holders import holders, names_of
from taskweaver.ces.inkernel.forking.mappings import Mappings
from taskweaver.ces.inkernel.forking.sockets import idle_sockets
from taskweaver.ces.inkernel.process.forked import is_only_read, open_files

_PASSING_FILES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/pts/", "/proc/")
_GPUS = ("/dev/nvidia", "/dev/kfd")
_PASSING_MAPPINGS = ("/dev/shm/sem.", "/dev/zero", "anon_inode:", "/memfd:doublemapper")
_FILES = {io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom, io.FileIO}


class OpenFiles:
    """Distinguishes the kernel's own files from those that the user's code opened."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        """Record the open files; call it before any code of the user ran."""
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
    ends = {_access(other) for other, its_link in files.items() if its_link == link}
    return link if {os.O_RDONLY, os.O_WRONLY} <= ends else None


def mapping_reasons(mappings: Mappings) -> Iterator[str]:
    """Yield the files whose mappings both sides of a fork would write to."""
    for path in sorted(mappings.shared_for_writing()):
        if not path.startswith(_PASSING_MAPPINGS):
            yield f"the file {path} is mapped for writing"


def _access(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE


def _is_open_at(file: Any, fd: int) -> bool:
    try:
        return bool(file.fileno() == fd)
    except ValueError:  # closed or detached
        return False


def _address(fd: int) -> object:
    """Return the address to which a socket is bound; an accepted connection has its listener's."""
    with socket.socket(fileno=os.dup(fd)) as copy:
        return copy.getsockname() or f"unbound {fd}"
