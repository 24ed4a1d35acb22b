"""This process's place and limits in the tree of control groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_SUBGROUP = "server"
_NO_LIMIT = 1 << 62  # version 1 writes a number near 2 ** 63 for none
LIMIT_FILES = {
    "memory": ("memory.max", "memory.limit_in_bytes"),
    "pids": ("pids.max", "pids.max"),
    "cpu": ("cpu.weight", "cpu.shares"),
}
"""Files with the limit of each controller, in version 2 and in version 1."""


def own_memory_limit() -> int:
    """Return the memory in bytes that the control group of this process allows, or 0 for any."""
    found = []
    for folder in _own_folders("memory"):
        for name in LIMIT_FILES["memory"]:
            with suppress(OSError, ValueError):  # the other version's, the root's, or ``max``
                found.append(int((folder / name).read_text()))
    return min((limit for limit in found if limit < _NO_LIMIT), default=0)


def parents(controller: str) -> Iterator[Path]:
    """Give the groups in which one with a controller can be made, the nearest first.

    In version 2 a group that has processes of its own has no groups with controllers below it, so
    the nearest is the first above this process's group that hands the controller on.
    """
    for folder in _own_folders(controller):
        if not os.access(folder, os.W_OK):
            continue
        control = folder / "cgroup.subtree_control"
        try:
            if not control.exists() or controller in control.read_text().split():
                yield folder
        except OSError:
            continue


def enter_subgroup() -> None:
    """Move this process below its control group, where it is alone in one that it may divide.

    Such a group is that of a systemd unit with ``Delegate=``, in version 2. While it has processes
    of its own, `parents` cannot find it; so call this before the first group is made.
    """
    pid, own = str(os.getpid()), next(iter(_own_folders("memory")), None)
    if own is None or next(parents("memory"), None) is not None:
        return
    with suppress(OSError):  # the group is not this user's, or of version 1: limits are watched
        if (own / "cgroup.procs").read_text().split() != [pid]:
            return
        offered = (own / "cgroup.controllers").read_text().split()
        subgroup = own / _SUBGROUP
        subgroup.mkdir(exist_ok=True)
        (subgroup / "cgroup.procs").write_text(pid)
        enabled = " ".join(f"+{name}" for name in LIMIT_FILES if name in offered)
        (own / "cgroup.subtree_control").write_text(enabled)


def _own_folders(controller: str) -> list[Path]:
    """Return the group of this process for a controller, and all parents up to the root."""
    try:
        lines = _OWN.read_text().splitlines()
    except OSError:
        return []
    found = {}
    for line in lines:
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            found[name] = path
    # A controller that version 1 has is none of version 2's.
    if (_MOUNT / controller / "cgroup.procs").exists():
        base, own = _MOUNT / controller, found.get(controller, "/")
    elif (_MOUNT / "cgroup.subtree_control").exists():
        base, own = _MOUNT, found.get("", "/")
    else:
        return []
    here = base.joinpath(*(part for part in own.split("/") if part not in ("", "..")))
    chain = [here, *here.parents]
    return [folder for folder in chain[: chain.index(base) + 1] if folder.is_dir()]
