"""Drops rights, then becomes another program: for machines without user namespaces.

``python <this file> POLICY COMMAND...``: POLICY is JSON with the fields of `Confinement`. It
imports nothing of this package. A process that enters a sandbox drops its rights here too, see
`entry`. The system enforces the policy on the program and all its children by Landlock and a filter
of system calls, see ``landlock(7)`` and ``seccomp(2)``. docs/security.md lists the differences from
namespaces.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import signal
import stat
import struct
import sys
from dataclasses import dataclass

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_VERSION_ONLY = 1
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_READ_BOUND, _DROP_BOUND, _CAPABILITY_VERSION_3 = 23, 24, 0x20080522
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_CONNECT_TCP = 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL


@dataclass(frozen=True, slots=True)
class Confinement:
    """The rights that remain to a program.

    Attributes:
        readable: Paths it may read and run; None where a mount namespace keeps the files.
        writable: Paths it may also write.
        has_network: Whether it may connect to other machines, and to this one.
        filter: The filter of system calls, in base64.
    """

    readable: list[str] | None
    writable: list[str]
    has_network: bool
    filter: str


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def main() -> None:
    """Drop rights and run the command."""
    policy = Confinement(**json.loads(sys.argv[1]))
    command = sys.argv[2:]
    give_up_rights(policy)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # what this interpreter ignores
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)


def give_up_rights(policy: Confinement) -> None:
    """Restrict this process, and all that it starts, to a policy.

    Raises:
        SystemExit: If the system does not do one of the steps.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _drop_capabilities(libc)
    _check(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    if policy.readable is not None:
        _confine_files(libc, policy.readable, policy.writable, has_network=policy.has_network)
    steps = base64.b64decode(policy.filter)
    program = _Program(len(steps) // 8, steps)
    _check(libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0), "seccomp")


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Give up the special rights of root, and those that running another program would bring."""
    number = 0
    while libc.prctl(_READ_BOUND, number, 0, 0, 0) == 1:
        if libc.prctl(_DROP_BOUND, number, 0, 0, 0) < 0:
            break  # an ordinary user: there is nothing to drop
        number += 1
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _check(libc.capset(header, bytes(24)), "capset")


def _confine_files(
    libc: ctypes.CDLL, readable: list[str], writable: list[str], *, has_network: bool
) -> None:
    version = libc.syscall(_CREATE_RULESET, None, 0, _VERSION_ONLY)
    _check(version, "landlock")
    rights = _all_rights(version)
    network = _CONNECT_TCP if version >= 4 and not has_network else 0
    scopes = _ABSTRACT_SOCKETS | _SIGNALS if version >= 6 else 0
    attributes = struct.pack("QQQ", rights, network, scopes)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(_CREATE_RULESET, attributes, size, 0)
    _check(ruleset, "landlock")
    for path in readable:
        _allow(libc, ruleset, path, rights & (_EXECUTE | _READ_FILE | _READ_DIR))
    for path in writable:
        _allow(libc, ruleset, path, rights)
    _check(libc.syscall(_RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)


def _all_rights(version: int) -> int:
    rights = (1 << 13) - 1
    for least, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL)):
        rights |= right if version >= least else 0
    return rights


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    """Allow access below a path, unless the path is missing."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, place)
        _check(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0), f"landlock: {path}")
    finally:
        os.close(place)


def _check(result: int, what: str) -> None:
    if result < 0:
        raise SystemExit(f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
