"""Native threads of this process, read from ``/proc``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TASKS = Path("/proc/self/task")
_EXITING = 0x4
"""``PF_EXITING`` of the kernel's ``sched.h``: the thread runs no code of the program any more."""
_STATE, _FLAGS, _START_TIME = 0, 6, 19
"""Fields 3, 9 and 22 of ``proc_pid_stat(5)``, counted from the field after the name."""


@dataclass(frozen=True, slots=True)
class NativeThread:
    """A thread at one moment.

    Attributes:
        id: Its number.
        name: Its name, cut by the system to 15 characters.
        start_time: Clock ticks from the system's start to the thread's; with the number it
            identifies a thread.
        state: Letter of its state, ``S`` for one that sleeps.
        is_ending: Whether it only waits to be removed.
    """

    id: int
    name: str
    start_time: int
    state: str
    is_ending: bool


@dataclass(frozen=True, slots=True)
class SystemCall:
    """The system call in which a thread sleeps.

    Attributes:
        number: Number of the call.
        first_argument: Its first argument; a file number for ``read``.
        stack_pointer: The thread's stack pointer.
    """

    number: int
    first_argument: int
    stack_pointer: int


def thread_ids() -> Iterator[int]:
    """Yield the numbers of all threads."""
    return map(int, os.listdir(_TASKS))  # noqa: PTH208 - numbers are wanted


def thread(id_: int) -> NativeThread | None:
    """Return a thread's present state; None when it has ended."""
    try:
        before, _, after = (_TASKS / f"{id_}/stat").read_text("utf-8", "replace").rpartition(")")
    except OSError:
        return None
    fields = after.split()
    state = fields[_STATE]
    is_ending = bool(int(fields[_FLAGS]) & _EXITING) or state in {"X", "Z"}
    name = before.partition("(")[2]
    return NativeThread(id_, name, int(fields[_START_TIME]), state, is_ending)


def system_call(id_: int) -> SystemCall | None:
    """Return the call in which a thread sleeps; None when it runs or has ended."""
    try:
        fields = (_TASKS / f"{id_}/syscall").read_text("ascii").split()
    except OSError:
        return None
    if len(fields) < 9 or fields[0] == "-1":
        return None
    return SystemCall(int(fields[0]), int(fields[1], 16), int(fields[7], 16))


def voluntary_switches(id_: int) -> int | None:
    """Return how often a thread has gone to sleep so far; None when it has ended."""
    try:
        status = (_TASKS / f"{id_}/status").read_text("utf-8", "replace")
    except OSError:
        return None
    value = status.partition("\nvoluntary_ctxt_switches:")[2].partition("\n")[0]
    return int(value) if value else None
