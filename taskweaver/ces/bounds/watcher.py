"""The processes of a session or a command: found, measured, and ended where they exceed a bound.

Measurement runs in the thread that waits for them: there is no thread and no timer of its own.
"""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from taskweaver.ces.bounds.bound import KEYS, limits_own_processes
from taskweaver.ces.bounds.cgroup import ControlGroup
from taskweaver.ces.bounds.folder_size import FolderSize
from taskweaver.ces.process.footprint import read_rollup

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STAT_BYTES = 4096
_ENDED = {"Z", "X", "x"}
_BLOCK_BYTES = 512
_MOST_NAMES = 5
_ROOM = 4  # other programs of the user start processes too
_HIDDEN_EVERY_S = 1.0
_FOLDER_SLICE_S = 0.02
_SETTLE_S = 0.5
_SLACK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Process:
    """A process, as described in ``/proc/PID/stat``.

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


RoomLeft = Callable[[], int | None]
"""Returns the bytes that the owner of folders may still write; None for no limit."""
Processes = Mapping[int, Process]
"""Processes by their ids."""


def running_processes() -> dict[int, Process]:
    """Map process ids to all processes. The result is empty where the system has no ``/proc``."""
    found = {}
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - names are wanted
            if name.isdigit():
                process = read_process(int(name))
                if process is not None:
                    found[process.pid] = process
    return found


def read_process(pid: int) -> Process | None:
    """Return the process of an id, or None."""
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


def family(processes: Processes, roots: Collection[int]) -> dict[int, Process]:
    """Return the processes whose ids are `roots`, and all descendants.

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
    """Kill processes, except where an id belongs to another process by now."""
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


def memory_use(process: Process) -> tuple[int, int]:
    """Return the memory of a process, in which a page that several share counts in parts.

    The memory of templates and snapshots in a sandbox is closed to the code beside them, and to an
    ordinary user; they hand over a file that describes it. A process whose memory is closed, and
    that handed over no file or a wrong one, counts with all that it shares.

    Returns:
        All bytes, and the part of them that is in shared files of memory.
    """
    sizes = read_rollup(process.pid)
    return sizes.get("Pss", process.resident_bytes), sizes.get("Pss_Shmem", 0)


@dataclass(frozen=True, slots=True)
class Breach:
    """A bound that was exceeded.

    Attributes:
        name: The resource.
        text: The event, the figures and the key, in a line.
        stops: Whether the cell or command may not go on.
    """

    name: str
    text: str
    stops: bool = False


@dataclass(frozen=True, slots=True)
class WatchedLimits:
    """Limits for a group of processes together, where 0 sets no limit.

    Threads count as processes.
    """

    memory_bytes: int = 0
    processes: int = 0
    folder_bytes: int = 0


def watched(limits: WatchedLimits, group: ControlGroup, tier: str) -> WatchedLimits:
    """Return the limits that neither a control group nor a sandbox enforces."""
    is_counted = "pids" in group.held or limits_own_processes(tier)
    return WatchedLimits(
        0 if "memory" in group.held else limits.memory_bytes,
        0 if is_counted else limits.processes,
        limits.folder_bytes,
    )


class Watcher:
    """Watcher that keeps processes within bounds. Close the watcher.

    Attributes:
        limits: Their limits; a bound that the system keeps is not among them.
        asleep: Ids of those that run no code of a session, and hold no files of it.
    """

    def __init__(self, limits: WatchedLimits, room: RoomLeft = lambda: None) -> None:
        """Watch nothing yet. The folders may take no more than the `room` left, too."""
        self.limits = limits
        self._room = room
        self._folder = FolderSize()
        self._folder_before = 0
        self._hidden = (0, 0)
        self._hidden_at = 0.0
        self.asleep: Collection[int] = ()

    def add_folder(self, folder: Path) -> None:
        """Measure a folder too."""
        self._folder.add(folder)

    @property
    def needs_processes(self) -> bool:
        """True if all processes have to be looked at periodically."""
        return bool(self.limits.memory_bytes or self.limits.processes)

    @property
    def watches_folders(self) -> bool:
        """True if the folders are limited."""
        return bool(self.limits.folder_bytes) or self._room() is not None

    def begin(self) -> None:
        """Begin a cell: from now on the folders may not grow beyond their limit."""
        if self.watches_folders:
            self._folder.settle(_SETTLE_S, self.limits.folder_bytes)
            self._folder_before = self._folder.bytes + self._hidden[1]

    def look(
        self, family: Processes, own: Collection[int], *, is_last: bool = False
    ) -> list[Breach]:
        """Measure, and end processes that exceed a bound.

        Those of `own`, kernels and their parents, are ended last. At a cell's end (`is_last`) the
        folders are measured to the end.
        """
        living = {pid: one for pid, one in family.items() if not one.is_ended}
        now = time.monotonic()
        limit = self.limits.folder_bytes
        has_grown = is_last and self.watches_folders and self._folder.settle(_SETTLE_S, limit)
        if has_grown or now >= self._hidden_at + _HIDDEN_EVERY_S:
            self._measure_hidden(living)
        found = [
            self._look_at_processes(living, own),
            self._look_at_memory(living),
            self._look_at_folders(living, own, is_last=is_last),
        ]
        return [breach for breach in found if breach is not None]

    def _measure_hidden(self, family: Processes) -> None:
        awake = [one for one in family.values() if one.pid not in self.asleep]
        self._hidden, self._hidden_at = hidden_bytes(awake), time.monotonic()

    def _look_at_processes(self, family: Processes, own: Collection[int]) -> Breach | None:
        limit = self.limits.processes
        count = sum(one.threads for one in family.values())
        if not limit or count <= limit:
            return None
        others = [one for one in family.values() if one.pid not in own]
        kept = count - sum(one.threads for one in others)
        ended = others
        if kept > limit:  # threads of a kernel
            ended = [*others, max(family.values(), key=lambda one: one.threads)]
        end(ended)
        text = f"Processes and threads reached {count:,}; {KEYS['processes']} allows {limit:,}."
        return Breach("processes", f"{text} Ended: {names_of(ended)}.", stops=True)

    def _look_at_memory(self, family: Processes) -> Breach | None:
        limit = self.limits.memory_bytes
        if not limit:
            return None
        resident = sum(one.resident_bytes for one in family.values())
        if not family or resident + self._hidden[0] <= limit:
            return None  # counted once, it is less still
        self._measure_hidden(family)  # a process that held a file may have ended since
        in_files = self._hidden[0]
        uses = {pid: memory_use(one) for pid, one in family.items()}
        used, shared = (sum(parts) for parts in zip(*uses.values(), strict=True))
        size = used - shared + max(shared, in_files)
        if size <= limit:
            return None
        largest = max(family.values(), key=lambda one: uses[one.pid][0])
        end([largest])
        key, name = KEYS["memory"], names_of([largest])
        text = f"Memory reached {size >> 20:,} MiB; {key} allows {limit >> 20:,} MiB."
        return Breach("memory", f"{text} Ended: {name}.")

    def _look_at_folders(
        self, family: Processes, own: Collection[int], *, is_last: bool
    ) -> Breach | None:
        if not self.watches_folders:
            return None
        if not is_last:
            self._folder.advance(_FOLDER_SLICE_S)
        limit, key = self._folder_limit()
        if self._folder.bytes + self._hidden[1] > limit:
            self._measure_hidden(family)
        size = self._folder.bytes + self._hidden[1]
        # In a folder that was too large before, code may run, and remove files.
        if size <= limit or size <= self._folder_before + _SLACK_BYTES:
            return None
        self._folder_before = size  # reported once
        end([one for one in family.values() if one.pid not in own])
        text = f"The working folder reached {size >> 20:,} MiB"
        return Breach("working folder", f"{text}; {key} allows {limit >> 20:,} MiB.", stops=True)

    def _folder_limit(self) -> tuple[int, str]:
        """Return the most bytes that the folders may have now, and the key that sets it."""
        limit, room = self.limits.folder_bytes, self._room()
        if room is None or 0 < limit < self._folder.bytes + room:
            return limit, KEYS["working folder"]
        return max(self._folder.bytes + room, 0), "disk_mb of the user"

    def close(self) -> None:
        """Break the measuring of folders off."""
        self._folder.close()
