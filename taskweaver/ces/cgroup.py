"""The limit on a sandbox's processes, by a control group, where this process may make one.

A process limits its own number of processes by ``RLIMIT_NPROC``, which the system does not keep
for root; root can make control groups, which hold for it too. See ``cgroups(7)``.
"""

from __future__ import annotations

import os
from pathlib import Path

from taskweaver.utils.ids import create_id

_MOUNT = Path("/sys/fs/cgroup")
_JOIN = 'echo $$ > "$0/cgroup.procs" || exit 126; exec "$@"'


class ControlGroup:
    """A control group of a sandbox's own. Remove it when nothing runs in it any more."""

    def __init__(self, process_limit: int) -> None:
        """Make it, where that can be done.

        Args:
            process_limit: Most processes and threads in it; 0 makes none.
        """
        parent = _parent() if process_limit else None
        self._folder = parent / create_id("taskweaver") if parent else None
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

    def remove(self) -> None:
        """Remove it; what still runs in it keeps it."""
        folder, self._folder = self._folder, None
        if folder is not None and folder.is_dir():
            try:
                folder.rmdir()
            except OSError:
                self._folder = folder


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
