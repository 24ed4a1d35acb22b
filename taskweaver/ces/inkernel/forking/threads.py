"""Native threads of this process, and their owners.

A thread can be renamed, and its stack holds stale words of earlier threads. Its start routine is
reliable: glibc keeps it in the descriptor above the thread's stack. No offset of a glibc version
is built in: two threads made for the purpose show where number and routine are kept.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import platform
import sys
import threading
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from taskweaver.ces.inkernel.forking.files import Mappings

_TASKS = Path("/proc/self/task")
_EXITING = 0x4
"""``PF_EXITING`` of the kernel's ``sched.h``: the thread runs no code of the program any more."""
_STATE, _FLAGS, _START_TIME = 0, 6, 19
"""Fields 3, 9 and 22 of ``proc_pid_stat(5)``, counted from the field after the name."""
ThreadKey = tuple[int, int]
"""Number and start time of a thread."""
_WORD = 8
_CHUNK_BYTES = 1 << 14
_SCAN_BYTES = 1 << 20
_DESCRIPTOR_BYTES = 4096
_LOOKS = 100
_LOOK_S = 0.001
_LAYOUTS: list[Layout] = []


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
    """Return a thread's present state, or None for an ended thread."""
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
    """Return the call in which a thread sleeps, or None for a running or ended thread."""
    try:
        fields = (_TASKS / f"{id_}/syscall").read_text("ascii").split()
    except OSError:
        return None
    if len(fields) < 9 or fields[0] == "-1":
        return None
    return SystemCall(int(fields[0]), int(fields[1], 16), int(fields[7], 16))


def voluntary_switches(id_: int) -> int | None:
    """Return how often a thread has gone to sleep so far, or None for an ended thread."""
    try:
        status = (_TASKS / f"{id_}/status").read_text("utf-8", "replace")
    except OSError:
        return None
    value = status.partition("\nvoluntary_ctxt_switches:")[2].partition("\n")[0]
    return int(value) if value else None


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets in a thread descriptor, in words from the start.

    Attributes:
        number: The thread's number, in the lower half of the word.
        routine: The start routine; its argument is in the next word.
    """

    number: int
    routine: int


def _words(memory: FileIO, address: int, size: int) -> list[int]:
    """Return the readable words at an address, fewer where the memory ends."""
    try:
        data = os.pread(memory.fileno(), size, address)
    except (OSError, OverflowError):
        return []
    return memoryview(data[: len(data) // _WORD * _WORD]).cast("Q").tolist()


class ThreadOwners:
    """Attribution of threads to the files whose code runs.

    Attributes:
        layout: Offsets of the descriptor's fields; None where they cannot be determined.
    """

    def __init__(self) -> None:
        self.layout: Layout | None = None
        self._known: dict[ThreadKey, str] = {}

    def owner(self, thread: NativeThread, mappings: Mappings) -> str | None:
        """Return the file that a thread belongs to, or None when unknown.

        It is remembered by the thread's number and start time; `mappings` are as new as its code.
        """
        key = (thread.id, thread.start_time)
        if key not in self._known:
            found = self._look_up(thread, mappings)
            if found is None:
                return None
            self._known[key] = found
        return self._known[key]

    def forget_all_but(self, keys: Set[ThreadKey]) -> None:
        """Forget the owners of ended threads, given number and start time of the rest."""
        self._known = {key: self._known[key] for key in self._known.keys() & keys}

    def _look_up(self, thread: NativeThread, mappings: Mappings) -> str | None:
        if self.layout is None:
            return None
        with FileIO("/proc/self/mem") as memory:
            words = descriptor(memory, thread.id)
            if len(words) <= max(self.layout.number, self.layout.routine + 1):
                return None
            if words[self.layout.number] & 0xFFFFFFFF != thread.id:
                return None
            routine, argument = words[self.layout.routine : self.layout.routine + 2]
            owner = _code_at(routine, mappings)
            if owner is not None and Path(owner).name.startswith("libstdc++.so"):
                # std::thread: the object that is its argument has a table of functions.
                table = _words(memory, argument, _WORD)
                found = _words(memory, table[0], _WORD) if table else []
                mapping = mappings.at(table[0]) if found else None
                owner = mapping.path if mapping and mapping.path.startswith("/") else None
            return owner


def layout(mappings: Mappings) -> Layout | None:
    """Return the layout of descriptors, from `calibrated` at the first call that succeeds.

    It is the same in all forks of this process, which inherit it.
    """
    if not _LAYOUTS:
        found = calibrated(mappings)
        if found is not None:
            _LAYOUTS.append(found)
    return _LAYOUTS[0] if _LAYOUTS else None


def calibrated(mappings: Mappings) -> Layout | None:
    """Find the offsets in a thread descriptor by means of two threads.

    Returns:
        The offsets; None on other machines and C libraries, or when they are ambiguous.
    """
    if not _is_known_platform():
        return None
    routine = ctypes.cast(ctypes.pythonapi.PyThread_start_new_thread, ctypes.c_void_p).value
    interpreter = _code_at(routine or 0, mappings)
    if interpreter is None:
        return None
    with FileIO("/proc/self/mem") as memory, _sleeping_threads() as ids:
        found = [(id_, _waited_descriptor(memory, id_)) for id_ in ids]
    numbers = set.intersection(
        *({n for n, w in enumerate(ws) if w & 0xFFFFFFFF == id_} for id_, ws in found)
    )
    routines = set.intersection(
        *(
            {(n, w) for n, w in enumerate(ws) if _code_at(w, mappings) == interpreter}
            for _, ws in found
        )
    )
    if not numbers or len(routines) != 1:
        return None
    return Layout(min(numbers), routines.pop()[0])


def descriptor(memory: FileIO, thread_id: int) -> list[int]:
    """Return the words of a sleeping thread's descriptor, or an empty list.

    It begins with its own address, which stands again two words later.
    """
    call = system_call(thread_id)
    if call is None:
        return []
    first = call.stack_pointer & -_WORD
    for start in range(first, first + _SCAN_BYTES, _CHUNK_BYTES):
        words = _words(memory, start, _CHUNK_BYTES + 2 * _WORD)
        for n in range(len(words) - 2):
            address = start + n * _WORD
            if words[n] == address and words[n + 2] == address:
                return _words(memory, address, _DESCRIPTOR_BYTES)
        if len(words) < _CHUNK_BYTES // _WORD:
            break
    return []


def _is_known_platform() -> bool:
    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.maxsize < 1 << 32:
        return False
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except ValueError:
        return False  # another C library does not know this name


def _code_at(address: int, mappings: Mappings) -> str | None:
    mapping = mappings.at(address)
    return mapping.path if mapping and "x" in mapping.access and mapping.path else None


def _waited_descriptor(memory: FileIO, thread_id: int) -> list[int]:
    pause = threading.Event()
    for _ in range(_LOOKS):
        words = descriptor(memory, thread_id)
        if words:
            return words
        pause.wait(_LOOK_S)
    return []


@contextmanager
def _sleeping_threads() -> Iterator[list[int]]:
    """Yield the numbers of two threads that sleep until the end of the block."""
    ids: list[int] = []
    begun, end = threading.Semaphore(0), threading.Lock()

    def sleep() -> None:
        ids.append(threading.get_native_id())
        begun.release()
        with end:
            pass

    with end:
        started = 0
        try:
            for _ in range(2):
                # Not by `threading`, which a cell may have replaced.
                _thread.start_new_thread(sleep, ())
                started += 1
        except RuntimeError:
            started = 0  # no room for a thread: without it no layout is found
        for _ in range(started):
            begun.acquire()
        yield list(ids[:started])
