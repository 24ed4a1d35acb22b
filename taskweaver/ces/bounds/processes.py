"""The processes of a session: found, measured, and ended."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_STAT_BYTES = 4096
_ENDED = {"Z", "X", "x"}
_BLOCK_BYTES = 512
_MOST_NAMES = 5
_ROOM = 4  # other programs of the user start processes too


@dataclass(frozen=True, slots=True)
class Process:
    """A process, as ``/proc/PID/stat`` describes it.

    Attributes:
        pid: Its id.
        parent: Id of its parent.
        session: Id of its session of processes, see ``setsid(2)``.
        threads: Number of its threads.
        started: When it started, in ticks of the system; with the id it names one process.
        resident_bytes: Its memory, with all that it shares.
        name: Its name in printable characters; the process chose it.
        is_ended: Whether it has ended and waits for its parent to notice.
    """

    pid: int
    parent: int
    session: int
    threads: int
    started: int
    resident_bytes: int
    name: str
    is_ended: bool


def running_processes() -> dict[int, Process]:
    """Return all processes by their ids; none where the system has no ``/proc``."""
    found = {}
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - names are wanted
            if name.isdigit():
                process = read_process(int(name))
                if process is not None:
                    found[process.pid] = process
    return found


def read_process(pid: int) -> Process | None:
    """Return a process; None when there is none with this id."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(fd, _STAT_BYTES)
        finally:
            os.close(fd)
    except OSError:
        return None
    name, _, rest = data.partition(b"(")[2].rpartition(b")")
    fields = rest.decode("ascii", "replace").split()
    text = name.decode("ascii", "replace")
    if not text.isprintable():
        text = "".join(c if c.isprintable() else "?" for c in text)
    numbers = [int(fields[place]) for place in (1, 3, 17, 19, 21)]
    parent, session, threads, started, pages = numbers
    size = pages * _PAGE_BYTES
    return Process(pid, parent, session, threads, started, size, text, fields[0] in _ENDED)


def room_for_processes(limit: int) -> int:
    """Return a limit on all threads of this user, with room for `limit` and other programs."""
    count = _ROOM * limit
    for process in running_processes().values():
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{process.pid}").stat().st_uid == os.geteuid():
                count += process.threads
    return count


def family(processes: Mapping[int, Process], roots: Collection[int]) -> dict[int, Process]:
    """Return the processes whose ids are `roots`, and those that they started.

    A process that lost its parent is found while it stays in the session of one of them.
    """
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    waiting = [process for process in processes.values() if process.session in roots]
    waiting += [processes[pid] for pid in roots if pid in processes]
    found: dict[int, Process] = {}
    while waiting:
        process = waiting.pop()
        if process.pid not in found:
            found[process.pid] = process
            waiting += children.get(process.pid, ())
    return found


def hidden_bytes(processes: Iterable[Process]) -> tuple[int, int]:
    """Return the sizes of files without a name that processes hold open.

    Files of a process that may not be looked into are left out.

    Returns:
        Bytes of files in memory (``memfd_create(2)``), and bytes of deleted files.
    """
    memory: dict[tuple[int, int], int] = {}
    disk: dict[tuple[int, int], int] = {}
    for process in processes:
        for path in _open_files(process.pid):
            with suppress(OSError):  # it was closed meanwhile
                facts = os.stat(path)  # noqa: PTH116 - many, and fast
                if stat.S_ISREG(facts.st_mode) and not facts.st_nlink:
                    is_memory = os.readlink(path).startswith("/memfd:")  # noqa: PTH115
                    found = memory if is_memory else disk
                    found[facts.st_dev, facts.st_ino] = facts.st_blocks * _BLOCK_BYTES
    return sum(memory.values()), sum(disk.values())


def _open_files(pid: int) -> list[str]:
    folder = f"/proc/{pid}/fd"
    try:
        return [f"{folder}/{number}" for number in os.listdir(folder)]  # noqa: PTH208 - names
    except OSError:
        return []


def end(processes: Iterable[Process]) -> None:
    """Kill processes; one whose id became another's meanwhile is left alone."""
    for process in processes:
        try:
            handle = os.pidfd_open(process.pid)
        except OSError:
            continue  # it has ended
        try:
            now = read_process(process.pid)
            if now is not None and now.started == process.started:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except OSError:
            continue  # it has ended, or another user's took its id
        finally:
            os.close(handle)


def names_of(processes: Collection[Process]) -> str:
    """Return the names of processes, each once, the most frequent first."""
    counts: dict[str, int] = {}
    for process in processes:
        counts[process.name] = counts.get(process.name, 0) + 1
    names = sorted(counts, key=lambda name: (-counts[name], name))
    listed = [f"{name} ({counts[name]})" if counts[name] > 1 else name for name in names]
    more = len(listed) - _MOST_NAMES
    return ", ".join(listed[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
