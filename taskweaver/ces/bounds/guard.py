"""The bounds of one session: processes, folders and log, whichever kernel is in use."""

from __future__ import annotations

import os
import resource
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from taskweaver.ces.bounds.bound import KEYS, ResourceBound, bounds_of
from taskweaver.ces.bounds.cgroup import ControlGroup, GroupEvents
from taskweaver.ces.bounds.watcher import (
    Breach,
    Process,
    Processes,
    RoomLeft,
    WatchedLimits,
    Watcher,
    end,
    family,
    names_of,
    read_process,
    room_for_processes,
    running_processes,
    watched,
)
from taskweaver.ces.errors import KernelStartFailed
from taskweaver.ces.limits import KernelLimits
from taskweaver.ces.process.handles import is_owned

_OPEN = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_KEPT_BYTES = 1 << 20
SLICE_S = 0.25
"""Time between two looks at a cell that runs."""
_FIRST_SLICE_S, _FIRST_S = 0.05, 0.5  # processes multiply fast
_FREE_PROCESSES = 4
_KERNEL_THREADS = 12
_NICENESS = 5
_PAUSE_S = 0.5
"""Time between two looks at processes that cells left behind."""


def trim_log(path: Path, limit_bytes: int) -> int:
    """Remove the beginning of a log above a limit, where 0 sets no limit.

    Returns:
        The bytes it had; 0 when it is within its size, or no file that can be cut.
    """
    if not limit_bytes:
        return 0
    try:
        if path.lstat().st_size <= limit_bytes:
            return 0
        file = os.open(path, _OPEN)
    except OSError:
        return 0
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size <= limit_bytes:
            return 0
        kept = min(limit_bytes // 2, _KEPT_BYTES)
        tail = os.pread(file, kept, facts.st_size - kept)
        os.ftruncate(file, 0)
        left_out = facts.st_size - len(tail)
        os.write(file, f"[{left_out:,} bytes were removed here]\n".encode() + tail)
        return facts.st_size
    finally:
        os.close(file)


class CellWatch:
    """The bounds while one cell runs.

    Attributes:
        breaches: The bounds that were exceeded so far.
        late: Those that were exceeded between the cell before and this one.
        left: How many processes the cell left behind, and their names; empty for none, None until
            they are counted.
    """

    def __init__(self, guard: SessionGuard) -> None:
        self.breaches: list[Breach] = []
        self.late: list[Breach] = []
        self.left: str | None = None
        self._guard = guard
        self._began = time.monotonic()
        self._looked = self._began
        self._stopped = 0

    @property
    def slice_s(self) -> float:
        """Seconds to wait for the cell before the next look."""
        is_young = self._looked - self._began < _FIRST_S
        return _FIRST_SLICE_S if is_young and self._guard.needs_processes else SLICE_S

    def look(self) -> bool:
        """Measure when due, and return whether a new breach stops the cell."""
        now = time.monotonic()
        if now < self._looked + self.slice_s:
            return False
        self._guard.look()
        self._looked = time.monotonic()
        before, self._stopped = self._stopped, sum(breach.stops for breach in self.breaches)
        return self._stopped > before

    def finish(self) -> None:
        """Measure at the cell's end."""
        self.left = self._guard.look_at_end()


class SessionGuard:
    """Guard that keeps a session within bounds. Close the guard.

    Bounds that no control group holds are looked at while a cell runs, by the thread that waits
    for it, and while a process that a cell left behind runs, by a thread that ends with it.

    Attributes:
        limits: Limits of the session's resources.
        group: The control group of the newest sandbox; empty where there can be none.
    """

    def __init__(
        self,
        limits: KernelLimits,
        tier: str,
        log_path: Path,
        room: RoomLeft = lambda: None,
        owner: str = "",
    ) -> None:
        """Prepare a guard that limits nothing yet. `room` is as for `Watcher`.

        The sessions of an `owner` share processor time, see `ControlGroup`.
        """
        self._room, self._owner = room, owner
        self.limits = limits
        self._tier = tier
        self._log_path = log_path
        self._lock = threading.RLock()
        self.group = ControlGroup()
        self._has_group = False
        self._events = GroupEvents()
        self._folders: list[Path] = []
        self._watcher = Watcher(WatchedLimits(), room)
        self._roots: dict[int, int] = {}
        self._own: dict[int, int] = {}
        self._cells: list[CellWatch] = []
        self._late: list[Breach] = []
        self._is_over = threading.Event()  # ends the watch of leftovers
        self._renew()

    @property
    def needs_processes(self) -> bool:
        """True if processes have to be watched while a cell runs."""
        return self._watcher.needs_processes

    @property
    def bounds(self) -> tuple[ResourceBound, ...]:
        """The bounds, and the mechanism that enforces each."""
        # Before the first kernel: whatever the machine allows.
        return bounds_of(self.limits, self._tier, self.group.held if self._has_group else None)

    def new_group(self) -> ControlGroup:
        """Replace the control group of the session's processes by a new group."""
        with self._lock:
            self.group.remove()
            self._has_group, limits = True, self.limits
            self.group = ControlGroup(limits.process_limit, limits.memory_limit_bytes, self._owner)
            self._renew()
            return self.group

    def _renew(self) -> None:
        """Watch the bounds that the control group does not hold."""
        own = self.limits
        limits = WatchedLimits(own.memory_limit_bytes, own.process_limit, own.folder_limit_bytes)
        self._events = GroupEvents()
        self._watcher.close()
        self._watcher = Watcher(watched(limits, self.group, self._tier), self._room)
        for folder in self._folders:
            self._watcher.add_folder(folder)

    def add_folder(self, folder: Path) -> None:
        """Count a folder to the folders that code writes."""
        with self._lock:
            self._folders.append(folder)
            self._watcher.add_folder(folder)

    def adopt(self, pid: int) -> None:
        """Count a kernel or a sandbox's first process, and all it starts, as the session's own."""
        with self._lock:
            process = read_process(pid)
            if process is not None:
                self._roots[pid] = self._own[pid] = process.started
                self._cap(pid)
                with suppress(OSError):  # it has ended; whoever waits for it finds out
                    if pid not in self.group.processes():
                        self.group.add(pid)  # takes a lock of the whole system

    def adopt_family(self, pid: int) -> None:
        """Count a process, with all present descendants, as the session's own."""
        with self._lock:
            self.adopt(pid)
            processes = running_processes()
            for one in family(processes, {pid}).values():
                self._own[one.pid] = one.started
                self._cap(one.pid)

    def require_kernel(self) -> None:
        """Require room for the processes and threads of another kernel, unless it is the first.

        Without it a start would wait for threads that the system never gives.

        Raises:
            KernelStartFailed: If there is none.
        """
        limit = self.limits.process_limit
        with self._lock:
            if not limit or not self._roots:
                return
            count = sum(one.threads for one in self._family().values())
        if count + _KERNEL_THREADS > limit:
            raise KernelStartFailed(
                f"The session has {count:,} processes and threads, and a kernel takes"
                f" {_KERNEL_THREADS}: {KEYS['processes']} allows {limit:,}.",
                "Release the session, end processes that cells started, or raise the key.",
            )

    def _cap(self, pid: int) -> None:
        """Limit a single process, where no control group limits the session.

        Code of a server's user yields to the server. An ordinary user has a limit of processes.
        Processes that multiply as fast as they can leave the watcher no processor time.
        """
        if self._owner and "cpu" not in self.group.held:
            with suppress(OSError):  # it has ended
                os.setpriority(os.PRIO_PROCESS, pid, os.nice(0) + _NICENESS)
        if self._watcher.limits.processes and os.geteuid() != 0:
            most = room_for_processes(self.limits.process_limit)
            with suppress(OSError, ValueError):  # it has ended, or has a lower limit
                resource.prlimit(pid, resource.RLIMIT_NPROC, (most, most))

    @contextmanager
    def cell(self) -> Iterator[CellWatch]:
        """Keep the bounds while a cell runs in the block."""
        watch = CellWatch(self)
        with self._lock:
            self._is_over.set()
            watch.late, self._late = self._late, []
            if not self._cells:
                self._watcher.begin()
            self._cells.append(watch)
        try:
            yield watch
        finally:
            with self._lock:
                self._cells.remove(watch)
                # Under the lock: the cell of another branch, which begins now, ends the watch.
                is_left = not self._cells and (
                    self.left_behind() if watch.left is None else watch.left
                )
                if is_left:
                    self._watch_leftovers()

    def look(self) -> None:
        """Measure, end processes that exceed a bound, and note the breach for the running cells."""
        with self._lock:
            breaches = self._trim_log() + self._take_events()
            if self.needs_processes or self._watcher.watches_folders:
                breaches += self._watcher.look(self._family(), self._own)
            self._report(breaches)

    def look_at_end(self) -> str:
        """Measure after a cell, and return a sentence on the processes left behind, or ""."""
        with self._lock:
            found = self._family()
            breaches = self._trim_log() + self._take_events()
            left = self._strangers(found)
            if left and self._is_crowded(found, breaches):
                end(left)
                names = names_of(left)
                text = f"Processes that cells started leave no room below {KEYS['processes']}."
                breaches.append(Breach("processes", f"{text} Ended: {names}."))
                left = []
            breaches += self._watcher.look(found, self._own, is_last=True)
            self._report(breaches)
            return _left_sentence(left)

    def _is_crowded(self, processes: Processes, breaches: Sequence[Breach]) -> bool:
        """Return whether there are too many processes for the next cell and for storing states."""
        found = [breach for cell in self._cells for breach in cell.breaches]
        if any(breach.name == "processes" for breach in [*found, *breaches]):
            return True
        limit, count = self.limits.process_limit, sum(one.threads for one in processes.values())
        return bool(limit) and count + _FREE_PROCESSES > limit

    def _report(self, breaches: list[Breach]) -> None:
        for cell in self._cells:
            cell.breaches += breaches
        if not self._cells:
            self._late += breaches

    def _trim_log(self) -> list[Breach]:
        limit_bytes = self.limits.log_limit_bytes
        size = trim_log(self._log_path, limit_bytes)
        if not size:
            return []
        key, limit = KEYS["kernel.log"], limit_bytes >> 20
        text = f"kernel.log reached {size >> 20:,} MiB; {key} allows {limit:,} MiB."
        return [Breach("kernel.log", f"{text} Its beginning was removed.")]

    def _take_events(self) -> list[Breach]:
        """Return the control group's limits that the system enforced since the last look."""
        before, self._events = self._events, self.group.events()
        now, found = self._events, []
        if now.killed > before.killed:
            limit = self.limits.memory_limit_bytes >> 20
            text = f"Memory reached {limit:,} MiB, all that {KEYS['memory']} allows."
            found.append(Breach("memory", f"{text} The system ended a process."))
        if now.refused > before.refused:
            limit = self.limits.process_limit
            text = f"Processes and threads reached {limit:,}, all that {KEYS['processes']} allows."
            found.append(Breach("processes", f"{text} The system started no more."))
        return found

    def _family(self) -> dict[int, Process]:
        """Return the session's processes, and learn which of them are its own."""
        try:
            inside = map(read_process, self.group.processes())
            found = {one.pid: one for one in inside if one is not None}
        except OSError:  # the group was removed with its sandbox
            found = {}
        present = found
        if not found:
            known = map(read_process, {*self._roots, *self._own})
            present = {one.pid: one for one in known if one is not None}
        _forget_ended(self._roots, present)
        _forget_ended(self._own, present)
        if not found and self._roots:
            processes = running_processes()  # reads every process of the machine
            _forget_ended(self._roots, processes)
            found = family(processes, self._roots)
        self._own |= {pid: one.started for pid, one in found.items() if is_owned(pid)}
        # Templates and snapshots: there are many of them, and they only sleep.
        self._watcher.asleep = {pid for pid in found if is_owned(pid) and pid not in self._roots}
        return found

    def _strangers(self, processes: Processes) -> list[Process]:
        """Return the processes that run and that cells have started."""
        return [one for one in processes.values() if one.pid not in self._own and not one.is_ended]

    def left_behind(self) -> str:
        """Return number and names of running processes that cells started, or ""."""
        with self._lock:
            if not self._roots:
                return ""  # nothing has run
            return _left_sentence(self._strangers(self._family()))

    def _watch_leftovers(self) -> None:
        """Watch the processes that cells left behind, in a thread that ends with the last."""
        is_over = self._is_over = threading.Event()

        def watch() -> None:
            while not is_over.wait(_PAUSE_S) and self._look_between(is_over):
                pass

        threading.Thread(target=watch, name="leftovers", daemon=True).start()

    def _look_between(self, is_over: threading.Event) -> bool:
        """Measure between cells, and return whether a process of a cell is left."""
        with self._lock:
            if is_over.is_set():  # by the next cell, or the end, while this waited for the lock
                return False
            left = self._strangers(self._family())
            self.look()  # also after their end: they may have written until then
            if left and self._late:
                end(left)
            return bool(left)

    def close(self) -> None:
        """End the processes that cells left behind, and the watch."""
        with self._lock:
            self._is_over.set()
            self._watcher.close()
            end(one for one in self._family().values() if not is_owned(one.pid))
            self.group.remove()


def _forget_ended(known: dict[int, int], processes: Processes) -> None:
    """Forget processes that have ended, whose numbers may be in use again."""
    for pid, started in list(known.items()):
        if pid not in processes or processes[pid].started != started:
            del known[pid]


def _left_sentence(processes: list[Process]) -> str:
    if not processes:
        return ""
    count = len(processes)
    noun, verb = ("process", "runs") if count == 1 else ("processes", "run")
    return f"{count:,} {noun} that cells started still {verb}: {names_of(processes)}."
