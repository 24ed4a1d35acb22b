"""Measurement of a group of processes, which ends those that exceed a bound.

It runs in the thread that waits for them: there is no thread and no timer of its own.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from taskweaver.ces.bounds.bound import KEYS
from taskweaver.ces.bounds.folder_size import FolderSize
from taskweaver.ces.bounds.processes import Process, end, hidden_bytes, names_of
from taskweaver.ces.process.footprint import read_rollup

_HIDDEN_EVERY_S = 1.0
_FOLDER_SLICE_S = 0.02
_SETTLE_S = 0.5
_SLACK_BYTES = 1 << 20
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The memory of a process.

    Attributes:
        bytes: Its part: a page that several processes share counts in parts.
        in_files: The part of it that is in shared files of memory.
    """

    bytes: int
    in_files: int = 0


def memory_use(process: Process) -> MemoryUse:
    """Return the memory of a process.

    The memory of templates and snapshots in a sandbox is closed to the code beside them, and to an
    ordinary user; they hand over a file that describes it. A process whose memory is closed, and
    that handed over no file or a wrong one, counts with all that it shares.
    """
    sizes = read_rollup(process.pid)
    return MemoryUse(sizes.get("Pss", process.resident_bytes), sizes.get("Pss_Shmem", 0))


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
    """Limits for a group of processes together; 0 sets no limit.

    Threads count as processes.
    """

    memory_bytes: int = 0
    processes: int = 0
    folder_bytes: int = 0


class Watcher:
    """Keeps some processes within their bounds. Close it.

    Attributes:
        limits: Their limits; a bound that the system keeps is not among them.
        asleep: Ids of those that run no code of a session, and hold no files of it.
    """

    def __init__(self, limits: WatchedLimits) -> None:
        self.limits = limits
        self._folder = FolderSize()
        self._folder_before = 0
        self._hidden = (0, 0)
        self._hidden_at = 0.0
        self.asleep: Collection[int] = ()

    def add_folder(self, folder: Path) -> None:
        """Measure a folder too."""
        if self.limits.folder_bytes:
            self._folder.add(folder)

    @property
    def needs_processes(self) -> bool:
        """True if it has to look at all processes periodically."""
        return bool(self.limits.memory_bytes or self.limits.processes)

    def begin(self) -> None:
        """Begin a cell: from now on the folders may not grow beyond their limit."""
        if self.limits.folder_bytes:
            self._folder.settle(_SETTLE_S, self.limits.folder_bytes)
            self._folder_before = self._folder.bytes + self._hidden[1]

    def look(
        self, family: Mapping[int, Process], own: Collection[int], *, is_last: bool = False
    ) -> list[Breach]:
        """Measure, and end processes that exceed a bound.

        Those of `own`, kernels and their parents, are ended last. At a cell's end (`is_last`) the
        folders are measured to the end.
        """
        living = {pid: one for pid, one in family.items() if not one.is_ended}
        now = time.monotonic()
        limit = self.limits.folder_bytes
        has_grown = is_last and limit and self._folder.settle(_SETTLE_S, limit)
        if has_grown or now >= self._hidden_at + _HIDDEN_EVERY_S:
            self._measure_hidden(living)
        found = [
            self._look_at_processes(living, own),
            self._look_at_memory(living),
            self._look_at_folders(living, own, is_last=is_last),
        ]
        return [breach for breach in found if breach is not None]

    def _measure_hidden(self, family: Mapping[int, Process]) -> None:
        awake = [one for one in family.values() if one.pid not in self.asleep]
        self._hidden, self._hidden_at = hidden_bytes(awake), time.monotonic()

    def _look_at_processes(
        self, family: Mapping[int, Process], own: Collection[int]
    ) -> Breach | None:
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

    def _look_at_memory(self, family: Mapping[int, Process]) -> Breach | None:
        limit = self.limits.memory_bytes
        if not limit:
            return None
        resident = sum(one.resident_bytes for one in family.values())
        if not family or resident + self._hidden[0] <= limit:
            return None  # counted once, it is less still
        self._measure_hidden(family)  # a process that held a file may have ended since
        in_files = self._hidden[0]
        uses = {pid: memory_use(one) for pid, one in family.items()}
        shared = sum(use.in_files for use in uses.values())
        size = sum(use.bytes for use in uses.values()) - shared + max(shared, in_files)
        if size <= limit:
            return None
        largest = max(family.values(), key=lambda one: uses[one.pid].bytes)
        end([largest])
        key, name = KEYS["memory"], names_of([largest])
        text = f"Memory reached {size // _MEBIBYTE:,} MiB; {key} allows {limit // _MEBIBYTE:,} MiB."
        return Breach("memory", f"{text} Ended: {name}.")

    def _look_at_folders(
        self, family: Mapping[int, Process], own: Collection[int], *, is_last: bool
    ) -> Breach | None:
        limit = self.limits.folder_bytes
        if not limit:
            return None
        if not is_last:
            self._folder.advance(_FOLDER_SLICE_S)
        if self._folder.bytes + self._hidden[1] > limit:
            self._measure_hidden(family)
        size = self._folder.bytes + self._hidden[1]
        # In a folder that was too large before, code may run, and remove files.
        if size <= limit or size <= self._folder_before + _SLACK_BYTES:
            return None
        self._folder_before = size  # reported once
        end([one for one in family.values() if one.pid not in own])
        key = KEYS["working folder"]
        text = f"The working folder reached {size // _MEBIBYTE:,} MiB"
        return Breach(
            "working folder", f"{text}; {key} allows {limit // _MEBIBYTE:,} MiB.", stops=True
        )

    def close(self) -> None:
        """Break the measuring of folders off."""
        self._folder.close()
