"""Trial inside a sandbox of the actions that the sandbox must prevent.

It is run as a program by its path, with the facts of the outside as JSON, and imports nothing but
the standard library: the sandbox is tried, not this package. A process that entered a sandbox calls
`attempt_all` itself.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

NAMESPACES = ("ipc", "mnt", "net", "pid", "user", "uts")
_NEW_USER_NAMESPACE = 0x10000000
_GET_PARENT_DEATH_SIGNAL = 2
_VSOCK = 40
_MPTCP = 262


def _writes(path: str) -> None:
    with Path(path).open("r+"):
        pass


def _leaves(folder: Path) -> None:
    folder.mkdir()
    folder.rmdir()


def _connects(address: Any, family: int = socket.AF_INET, protocol: int = 0) -> None:
    with socket.socket(family, socket.SOCK_STREAM, protocol) as probe:
        probe.settimeout(2)
        probe.connect(address)


def _connects_by_sending(address: Any) -> None:
    with socket.socket() as probe:
        probe.sendto(b"x", socket.MSG_FASTOPEN, address)


def _outlives_its_owner() -> bool:
    signal = ctypes.c_int()
    ctypes.CDLL(None).prctl(_GET_PARENT_DEATH_SIGNAL, ctypes.byref(signal), 0, 0, 0)
    return signal.value == 0


def _has_capabilities() -> bool:
    lines = Path("/proc/self/status").read_text().splitlines()
    return any(int(line.split(":\t", 1)[1], 16) for line in lines if line.startswith("Cap"))


def _lacks(line: str) -> bool:
    return line not in Path("/proc/self/status").read_text()


def _changes_its_program() -> None:
    program = os.open("/proc/self/exe", os.O_RDONLY)
    try:
        os.fchmod(program, stat.S_IMODE(os.fstat(program).st_mode))
    finally:
        os.close(program)


def _shares_memory() -> bool:
    """Return whether it could write memory that another process reads."""
    rows = [line.split(maxsplit=2) for line in Path("/proc/self/maps").read_text().splitlines()]
    return any("w" in rights and rights.endswith("s") for _, rights, *_ in rows)


def _holds_files_of_outside() -> bool:
    """Return whether an open file lies on a foreign mount, where no path may lead."""
    mounts = {line.split()[0] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    held = set()
    for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - numbers are wanted
        with suppress(OSError):  # the listing's own, closed by now
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                lines = Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines()
                held |= {line.split()[1] for line in lines if line.startswith("mnt_id:")}
    return not held <= mounts


def _sees_devices() -> bool:
    return any((Path("/dev") / name).exists() for name in ("kmsg", "mem", "fuse", "loop-control"))


def _shares(namespace: str, outer: list[str]) -> bool:
    return str((Path("/proc/self/ns") / namespace).readlink()) in outer


def _attempts(facts: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    new = Path(facts["canary"]).parent.name  # what an earlier attempt left proves nothing
    yield "read a file outside", lambda: Path(facts["canary"]).read_text()
    yield "write a file outside", lambda: _writes(facts["canary"])
    yield "write to the system", lambda: _leaves(Path("/usr") / new)
    yield "make a folder at the top", lambda: _leaves(Path("/") / new)
    yield "write a setting of the system", lambda: _writes("/proc/sys/vm/swappiness")
    yield "connect to the machine", lambda: _connects(("127.0.0.1", facts["port"]))
    yield "connect by MPTCP", lambda: _connects(("127.0.0.1", facts["port"]), protocol=_MPTCP)
    yield "connect by sending", lambda: _connects_by_sending(("127.0.0.1", facts["port"]))
    yield "connect to an abstract socket", lambda: _connects(facts["abstract"], socket.AF_UNIX)
    yield "make a vsock", lambda: socket.socket(_VSOCK, socket.SOCK_STREAM).close()
    yield "signal a process outside", lambda: os.kill(facts["pid"], 0)
    yield "read another's environment", lambda: Path(f"/proc/{facts['pid']}/environ").read_bytes()
    yield "hold capabilities", _has_capabilities
    yield "gain rights from a program", lambda: _lacks("NoNewPrivs:\t1\n")
    yield "change its own program", _changes_its_program
    yield "share memory with another", _shares_memory
    yield "make any system call", lambda: _lacks("Seccomp:\t2\n")
    yield "see the machine's devices", _sees_devices
    if facts["is_entered"]:
        yield "hold files of outside", _holds_files_of_outside
    else:
        yield "outlive its owner", _outlives_its_owner
    yield "share the owner's terminal session", lambda: os.getsid(0) in {0, facts["session"]}
    for name in NAMESPACES:
        yield f"share the {name} namespace", partial(_shares, name, facts["ns"])
    # Last: it would change the others.
    unshare = ctypes.CDLL(None).unshare
    yield "make a user namespace", lambda: bool(unshare(_NEW_USER_NAMESPACE) == 0)


def attempt_all(facts: dict[str, Any]) -> None:
    """Try everything, and write the names of successful attempts to a file."""
    done = []
    for name, attempt in _attempts(facts):
        try:
            if attempt() is not False:
                done.append(name)
        except OSError:
            continue
    Path("here").write_text(json.dumps(done))


if __name__ == "__main__":
    attempt_all(json.loads(sys.argv[1]))
