"""A filter of system calls for untrusted code, in the form that ``seccomp(2)`` takes.

It refuses sockets other than local and internet ones: a new network namespace does not stop
``AF_VSOCK``, a way from a virtual machine to its host. It refuses new user namespaces and the
calls that administer a machine or open large parts of the system's kernel, none of which data
analysis needs. It refuses to read or change another process of the sandbox, by its memory, its
open files or a debugger: templates are among them, and each kernel starts from one.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

from taskweaver.ces.errors import SandboxUnavailable

_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# Offsets in `struct seccomp_data`.
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD, _FOURTH = 0, 4, 16, 24, 32, 40
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
_NEW_USER_NAMESPACE = 0x10000000
_CLONE3 = 435
_PERSONALITIES = (0, 8, 0x20000, 0x20008, 0xFFFFFFFF)
"""Usual ones, and the question for the present one; others switch protections off."""
_NETLINK = 16  # AF_NETLINK, a name that Python has on Linux alone
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, _NETLINK)
_KIND_BITS = 0xF
_FAST_OPEN = 0x20000000  # a flag of `send`: it connects, and Landlock does not hear of it

# By name: the numbers for x86_64 and aarch64, None where there is none.
REFUSED: dict[str, tuple[int | None, int | None]] = {
    "_sysctl": (156, None), "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171),
    "bpf": (321, 280), "chroot": (161, 51), "clock_adjtime": (305, 266),
    "clock_settime": (227, 112), "create_module": (174, None), "delete_module": (176, 106),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "finit_module": (313, 273),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433),
    "init_module": (175, 105), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425), "ioperm": (173, None), "iopl": (172, None), "kcmp": (312, 272),
    "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219),
    "lookup_dcookie": (212, 18), "memfd_secret": (447, 447), "migrate_pages": (256, 238),
    "modify_ldt": (154, None), "mount": (165, 40), "mount_setattr": (442, 442),
    "move_mount": (429, 429), "move_pages": (279, 239), "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42), "open_by_handle_at": (304, 265), "open_tree": (428, 428),
    "open_tree_attr": (467, 467), "perf_event_open": (298, 241), "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117),
    "query_module": (178, None), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "reboot": (169, 142), "request_key": (249, 218), "setdomainname": (171, 162),
    "sethostname": (170, 161), "setns": (308, 268), "settimeofday": (164, 170),
    "swapoff": (168, 225), "swapon": (167, 224), "sysfs": (139, None), "syslog": (103, 116),
    "umount2": (166, 39), "unshare": (272, 97), "uselib": (134, None), "userfaultfd": (323, 282),
    "ustat": (136, None), "vhangup": (153, 58),
}  # fmt: skip
"""The calls that are refused."""


class _Machine(NamedTuple):
    architecture: int
    socket: int
    clone: int
    personality: int
    column: int
    sends: tuple[tuple[int, int], ...]
    """The calls that send, and where their flags are."""


_MACHINES = {
    # sendto, sendmsg, sendmmsg
    "x86_64": _Machine(0xC000003E, 41, 56, 135, 0, ((44, _FOURTH), (46, _THIRD), (307, _FOURTH))),
    "aarch64": _Machine(
        0xC00000B7, 198, 220, 92, 1, ((206, _FOURTH), (211, _THIRD), (269, _FOURTH))
    ),
}


class _Step(NamedTuple):
    """One instruction. `yes` and `no` name the label to go on at, "" for the next instruction."""

    operation: int
    value: int
    yes: str = ""
    no: str = ""
    label: str = ""


def system_call_filter(*, has_datagrams: bool = True) -> bytes:
    """Return the program, an array of `struct sock_filter`.

    With `has_datagrams` internet sockets may be other than TCP.

    Raises:
        SandboxUnavailable: If there is no filter for this processor.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise SandboxUnavailable(f"there is no filter for {platform.machine()} yet")
    numbers = [row[machine.column] for row in REFUSED.values()]
    steps = [
        _Step(_LOAD, _ARCHITECTURE),
        _Step(_EQUAL, machine.architecture, no="unknown"),
        _Step(_LOAD, _NUMBER),
        _Step(_AT_LEAST, _X32, yes="unknown"),
        _Step(_EQUAL, machine.socket, yes="socket"),
        _Step(_EQUAL, machine.clone, yes="clone"),
        _Step(_EQUAL, machine.personality, yes="personality"),
        _Step(_EQUAL, _CLONE3, yes="unknown"),  # its flags cannot be seen; callers fall back
        *(_Step(_EQUAL, number, yes="refuse") for number in numbers if number is not None),
        *([] if has_datagrams else _sends(machine)),
        _Step(_RETURN, _ALLOW),
        _Step(_LOAD, _FIRST, label="clone"),
        _Step(_HAS_BIT, _NEW_USER_NAMESPACE, yes="refuse", no="allow"),
        _Step(_LOAD, _FIRST, label="personality"),
        *(_Step(_EQUAL, kind, yes="allow") for kind in _PERSONALITIES[:-1]),
        _Step(_EQUAL, _PERSONALITIES[-1], yes="allow", no="refuse"),
        _Step(_LOAD, _FIRST, label="socket"),
        *_families(has_datagrams=has_datagrams),
        _Step(_RETURN, _ERRNO | errno.EAFNOSUPPORT, label="family"),
        _Step(_RETURN, _ERRNO | errno.EPERM, label="refuse"),
        _Step(_RETURN, _ERRNO | errno.ENOSYS, label="unknown"),
        _Step(_RETURN, _ALLOW, label="allow"),
    ]
    return _assembled(steps)


def _families(*, has_datagrams: bool) -> list[_Step]:
    if has_datagrams:
        return [_Step(_EQUAL, family, yes="allow") for family in _FAMILIES]
    return [
        _Step(_EQUAL, socket.AF_UNIX, yes="allow"),
        _Step(_EQUAL, _NETLINK, yes="allow"),
        _Step(_EQUAL, socket.AF_INET, yes="kind"),
        _Step(_EQUAL, socket.AF_INET6, no="refuse"),
        _Step(_LOAD, _SECOND, label="kind"),
        _Step(0x54, _KIND_BITS),  # the lower bits are the kind, the others flags
        _Step(_EQUAL, socket.SOCK_STREAM, no="family"),
        # Other protocols of streams, such as MPTCP, reach TCP and are not Landlock's TCP.
        _Step(_LOAD, _THIRD),
        _Step(_EQUAL, 0, yes="allow"),
        _Step(_EQUAL, socket.IPPROTO_TCP, yes="allow", no="family"),
    ]


def _sends(machine: _Machine) -> Iterator[_Step]:
    """Refuse to connect by sending."""
    for place, (number, _) in enumerate(machine.sends):
        yield _Step(_EQUAL, number, yes=f"send {place}")
    yield _Step(_RETURN, _ALLOW)
    for place, (_, flags) in enumerate(machine.sends):
        yield _Step(_LOAD, flags, label=f"send {place}")
        yield _Step(_HAS_BIT, _FAST_OPEN, yes="refuse", no="allow")


def _assembled(steps: list[_Step]) -> bytes:
    places = {step.label: place for place, step in enumerate(steps) if step.label}

    def jump(label: str, place: int) -> int:
        return places[label] - place - 1 if label else 0

    return b"".join(
        struct.pack("HBBI", step.operation, jump(step.yes, place), jump(step.no, place), step.value)
        for place, step in enumerate(steps)
    )
