"""Control groups: limits on the memory and the number of the processes in one.

The system keeps them for all processes of a group together, also for root, and counts memory that
processes share once. Groups are made below the one this process runs in, or beside it: as root, or
where an ordinary user was given a part of the tree, as systemd gives one to each user's services.
See ``cgroups(7)``.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterable, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from taskweaver.ces.cgroup_tree import LIMIT_FILES, parents
from taskweaver.ces.process.handles import wait_for_ends
from taskweaver.utils.ids import create_id
from taskweaver.utils.system.platform import has_ended

_NAME = "taskweaver-"
_CHILDREN = "cgroup.subtree_control"
_WEIGHT = 50  # this process has 100
_OWNER_LOCK = threading.Lock()  # the group of an owner does not go while one is made in it
_JOIN = '{ echo $$ > "$1/cgroup.procs"; } && shift || exit 126; '


@dataclass(frozen=True, slots=True)
class GroupEvents:
    """Counts of the system's actions that enforced the limits of a group.

    Attributes:
        killed: Processes it killed because memory ran out.
        refused: Processes and threads it did not start.
    """

    killed: int = 0
    refused: int = 0


class ControlGroup:
    """A control group of a sandbox's own, to be removed when nothing runs inside any more."""

    def __init__(
        self, process_limit: int = 0, memory_limit_bytes: int = 0, owner: str = ""
    ) -> None:
        """Make the group where possible. Else the object is empty, and the other limits remain.

        Threads count as processes; 0 sets no limit. The groups of an `owner` share the processor
        time of one group, which is less than that of this process.
        """
        cpu = _WEIGHT if owner else 0
        wanted = {"memory": memory_limit_bytes, "pids": process_limit, "cpu": cpu}
        name = create_id(f"{_NAME}{os.getpid()}")
        self._owner = f"{_NAME}{os.getpid()}-{owner}" if owner else ""
        self._process_limit = process_limit
        self._folders: dict[str, Path] = {}
        for controller, limit in wanted.items():
            if limit:
                self._make(controller, limit, name)

    def _make(self, controller: str, limit: int, name: str) -> None:
        for parent in parents(controller):
            folder = parent / self._owner / name
            if (parent / _CHILDREN).exists() and self._places not in ([], [folder]):
                continue  # in version 2 a process is in one group
            limited = folder.parent if controller == "cpu" else folder
            with _OWNER_LOCK:
                try:
                    folder.parent.mkdir(exist_ok=True)
                    control = folder.parent / _CHILDREN
                    if self._owner and control.exists():  # version 2
                        control.write_text(f"+{controller}")
                    folder.mkdir(exist_ok=True)
                    _set_limit(limited, controller, limit)
                except OSError:
                    if folder not in self._places:
                        self._remove(folder)
                    continue
            self._folders[controller] = folder
            return

    def _remove(self, folder: Path) -> None:
        for place in (folder, folder.parent) if self._owner else (folder,):
            with suppress(OSError):  # it was not even made, or has something inside
                place.rmdir()

    @property
    def held(self) -> Set[str]:
        """Names of the controllers whose limits the system keeps: ``memory``, ``pids``, ``cpu``."""
        return frozenset(self._folders)

    @property
    def _places(self) -> list[Path]:
        """Folders of the group. Version 2 has one folder for all controllers."""
        return list(dict.fromkeys(self._folders.values()))

    def joined(self, command: list[str]) -> list[str]:
        """Return a command that joins the group, and then runs `command`."""
        places = self._places
        if not places:
            return command
        script = _JOIN * len(places) + 'exec "$@"'
        return ["/bin/sh", "-c", script, "join", *map(str, places), *command]

    def add(self, pid: int) -> None:
        """Move a running process, with its later children, into the group.

        Raises:
            OSError: If the process has ended, or may not be moved.
        """
        for place in self._places:
            (place / "cgroup.procs").write_text(str(pid))

    def processes(self) -> list[int]:
        """Return the ids of the processes in the group."""
        places = self._places
        if not places:
            return []
        return [int(pid) for pid in (places[0] / "cgroup.procs").read_text().split()]

    def events(self) -> GroupEvents:
        """Return counts of the system's actions that enforced the limits so far."""
        memory, processes = self._folders.get("memory"), self._folders.get("pids")
        killed = refused = 0
        if memory is not None:
            killed = _count(memory, ("memory.events", "memory.oom_control"), "oom_kill")
        if processes is not None:
            refused = _count(processes, ("pids.events",), "max")
        return GroupEvents(killed, refused)

    def kill(self) -> None:
        """Kill all processes. Nothing new can start in the group until `reopen`."""
        if not self._folders:
            return
        if "pids" in self._folders:
            (self._folders["pids"] / "pids.max").write_text("0")
        with ExitStack() as handles:
            found = []
            for pid in self.processes():
                with suppress(ProcessLookupError):  # it has ended
                    found.append(os.pidfd_open(pid))
                    handles.callback(os.close, found[-1])
                    signal.pidfd_send_signal(found[-1], signal.SIGKILL)
            wait_for_ends(found)

    def reopen(self) -> None:
        """Let processes start in the group again, after `kill`."""
        if "pids" in self._folders:
            (self._folders["pids"] / "pids.max").write_text(str(self._process_limit))

    def remove(self) -> None:
        """Remove the group, unless a process still runs inside."""
        for controller, folder in list(self._folders.items()):
            with _OWNER_LOCK:
                self._remove(folder)
            if not folder.is_dir():
                del self._folders[controller]


def sweep_groups() -> None:
    """Remove the empty groups of killed owners."""
    places = {place for name in LIMIT_FILES for place in parents(name)}
    names = (f"{_NAME}*/{_NAME}*", f"{_NAME}*")
    for place, name in product(places, names):
        found: list[Path] = []
        with suppress(OSError):  # a group that another process removes ends the listing
            found = list(place.glob(name))
        for folder in found:
            if has_ended(folder.name.removeprefix(_NAME).partition("-")[0]):
                with suppress(OSError):  # something runs in it still, or another was faster
                    folder.rmdir()


def counts_by_sandbox() -> bool:
    """Return whether processes are counted for each user namespace (Linux 5.14), not the user.

    Counted for the user, a desktop alone may have more than the limit.
    """
    numbers = re.findall(r"\d+", os.uname().release)[:2]
    return tuple(map(int, numbers)) >= (5, 14)


def _set_limit(folder: Path, controller: str, limit: int) -> None:
    """Write a limit. Memory that is swapped out counts too, where swap is counted."""
    names = [name for name in LIMIT_FILES[controller] if (folder / name).exists()]
    if not names:
        raise FileNotFoundError(folder)
    if names[0] == "cpu.shares":
        limit = 1024 * limit // 100
    (folder / names[0]).write_text(str(limit))
    if controller == "memory":
        for name, value in (("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", limit)):
            if (folder / name).exists():
                with suppress(OSError):  # swap is not counted here
                    (folder / name).write_text(str(value))


def _count(folder: Path, names: Iterable[str], field: str) -> int:
    """Return a number from the first file there is, which has lines of a name and a number."""
    for name in names:
        with suppress(OSError):
            rows = (line.split() for line in (folder / name).read_text().splitlines())
            return next((int(row[1]) for row in rows if row[0] == field), 0)
    return 0
