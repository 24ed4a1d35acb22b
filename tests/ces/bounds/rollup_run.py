"""Announces processes whose memory is closed, each with some file; prints what is read of each."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from taskweaver.ces.process.footprint import read_rollup
from taskweaver.ces.process.homes import Homes
from taskweaver.ces.template import Rendezvous

_SET_DUMPABLE = 4
CLOSED = f"""
import ctypes, sys
ctypes.CDLL(None).prctl({_SET_DUMPABLE}, 0, 0, 0, 0)
print("closed", flush=True)
sys.stdin.read()
"""


def opened(path: str) -> Callable[[Path], list[int]]:
    return lambda _: [os.open(path, os.O_RDONLY)]


def copied(folder: Path) -> list[int]:
    """Return a file with the name and the text of the right one."""
    copy = folder / str(os.getpid()) / "smaps_rollup"
    copy.parent.mkdir()
    copy.write_bytes(Path("/proc/self/smaps_rollup").read_bytes())
    return [os.open(copy, os.O_RDONLY)]


FILES: dict[str, Callable[[Path], list[int]]] = {
    "own": opened("/proc/self/smaps_rollup"),
    "replaced": opened("/proc/self/smaps_rollup"),
    "none": lambda _: [],
    "of its parent": opened(f"/proc/{os.getpid()}/smaps_rollup"),
    "other of its own": opened("/proc/self/smaps"),
    "copy": copied,
    "pipe": lambda _: [os.pipe()[0]],
    "folder": opened("/proc/self"),
    "without a name": lambda _: [os.memfd_create("smaps_rollup")],
}


def announce(name: str, address: str, folder: Path) -> None:
    """Close this process's memory and announce it with a file; it ends with its input."""
    files = FILES[name](folder)
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [b'{"pid": 1}\n'], [os.pidfd_open(os.getpid()), *files])
        if name == "replaced":
            os.execv(sys.executable, [sys.executable, "-c", CLOSED])
        print("closed", flush=True)
        sys.stdin.read()
    os._exit(0)


def seen_of(name: str, folder: Path) -> int:
    """Return the resident memory that is read of a process, in bytes; 0 where none is."""
    stdin, stdout = os.pipe(), os.pipe()
    own = os.pidfd_open(os.getpid())
    with Homes(folder).new() as home, Rendezvous(home) as expected:
        pid = os.fork()
        if not pid:
            os.dup2(stdin[0], 0)
            os.dup2(stdout[1], 1)
            for number in (*stdin, *stdout):
                os.close(number)
            announce(name, str(expected.path), folder)
        arrival = expected.arrive(own, 20, started=os.getpid())
        os.read(stdout[0], 100)
        size = read_rollup(pid).get("Rss", 0)
        arrival.handle.close()
        for number in (*stdin, *stdout, own):
            os.close(number)
        os.waitpid(pid, 0)
        arrival.connection.close()
        assert not read_rollup(pid)
    return size


def main() -> None:
    """Try each file."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count is wanted
    with tempfile.TemporaryDirectory() as folder:
        found = {name: seen_of(name, Path(folder)) for name in FILES}
    found["open files more"] = len(os.listdir("/proc/self/fd")) - before  # noqa: PTH208
    print(json.dumps(found))


if __name__ == "__main__":
    main()
