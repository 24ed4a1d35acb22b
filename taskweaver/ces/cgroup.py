"""The limit on a sandbox's processes, by a control group, where this process may make one.

A process limits its own number of processes by ``RLIMIT_NPROC``, which the system does not keep
for root; root can make control groups, which hold for it too. See ``cgroups(7)``.
"""

from __future__ import annotations

import os
import platform
import re
import signal
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from taskweaver.ces.process import wait_for_ends
from taskweaver.utils.ids import create_id

_MOUNT = Path("/sys/fs/cgroup")
_NAME = "taskweaver-"
_JOIN = 'echo $$ > "$0/cgroup.procs" || exit 126; exec "$@"'


class ControlGroup:
    """A control group of a sandbox's own. Remove it when nothing runs in it any more."""

    def __init__(self, process_limit: int) -> None:
        """Make it, where that can be done.

        Args:
            process_limit: Most processes and threads in it; 0 makes none.
        """
        parent = _parent() if process_limit else None
        self._folder = parent / create_id(f"{_NAME}{os.getpid()}") if parent else None
        if self._folder is None:
            return
        try:
            self._folder.mkdir()
            (self._folder / "pids.max").write_text(str(process_limit))
        except OSError:
            self.remove()  # a container, where nobody may; the other limits remain

    def joined(self, command: list[str]) -> list[str]:
        """Return a command that joins the group, and then runs `command` in it."""
        if self._folder is None:
            return command
        return ["/bin/sh", "-c", _JOIN, str(self._folder), *command]

    def add(self, pid: int) -> None:
        """Move a running process into the group; its later children are in it too.

        Raises:
            OSError: If the process has ended, or may not be moved.
        """
        if self._folder is not None:
            (self._folder / "cgroup.procs").write_text(str(pid))

    def kill(self) -> None:
        """Kill everything in it; nothing new can start in it from then on."""
        if self._folder is None:
            return
        (self._folder / "pids.max").write_text("0")
        with ExitStack() as handles:
            found = []
            for pid in (self._folder / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):  # it has ended
                    found.append(os.pidfd_open(int(pid)))
                    handles.callback(os.close, found[-1])
                    signal.pidfd_send_signal(found[-1], signal.SIGKILL)
            wait_for_ends(found)

    def remove(self) -> None:
        """Remove it; what still runs in it keeps it."""
        folder, self._folder = self._folder, None
        if folder is not None and folder.is_dir():
            try:
                folder.rmdir()
            except OSError:
                self._folder = folder


def sweep_groups() -> None:
    """Remove the empty groups of owners that were killed before they could."""
    parent = _parent()
    for folder in parent.glob(f"{_NAME}*") if parent else ():
        owner = folder.name.removeprefix(_NAME).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            with suppress(OSError):  # something runs in it still, or another was faster
                folder.rmdir()


def counts_by_sandbox() -> bool:
    """Return whether processes are counted for each user namespace (Linux 5.14), not the user.

    Counted for the user, a desktop alone may have more than the limit.
    """
    numbers = re.findall(r"\d+", platform.release())[:2]
    return tuple(map(int, numbers)) >= (5, 14)


def _parent() -> Path | None:
    """Return where groups for processes are made, in version 1 or 2; None where they are not."""
    if os.geteuid() != 0:
        return None
    if (_MOUNT / "pids" / "cgroup.procs").exists():
        return _MOUNT / "pids"
    try:
        enabled = (_MOUNT / "cgroup.subtree_control").read_text().split()
    except OSError:
        return None
    return _MOUNT if "pids" in enabled else None
