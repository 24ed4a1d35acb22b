"""A check that nothing is left running."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path

import psutil
from browser import BROWSERS

_LEFT_S = 60.0
"""Longest time that something may take to end; what stays longer was left behind."""


def _pids_below(pid: int) -> set[int]:
    """Return the processes below one, as the system lists the children of each.

    All tests look for theirs, twice, and to look at all processes of the machine takes longer than
    most tests.
    """
    children = set[int]()
    for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - a third of the time
        with open(f"/proc/{pid}/task/{task}/children", "rb", 0) as file:  # noqa: PTH123
            children.update(map(int, file.read().split()))
    return children.union(*map(_pids_below, children - BROWSERS))


def _descendants() -> set[int]:
    """Return the processes below this one, without those of browsers.

    A list of children may lack some while one of them ends: two that are equal are taken.
    """
    if not Path("/proc/self/task").exists():
        return {child.pid for child in psutil.Process().children(recursive=True)}
    before = None
    while True:
        with suppress(OSError):  # one of them has just ended
            found = _pids_below(os.getpid())
            if found == before:
                return found - BROWSERS
            before = found


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fail if the block leaves a child process or a non-daemon thread behind."""
    threads = set(threading.enumerate())
    children = _descendants()
    yield
    late = [
        thread
        for thread in threading.enumerate()
        # Launchers of an application that tests share start when several kernels do.
        if not (thread in threads or thread.daemon or thread.name.startswith("kernel-launcher"))
    ]
    for thread in late:
        thread.join(_LEFT_S)
    assert not [t for t in late if t.is_alive()], "threads left running"
    new = []
    for pid in _descendants() - children:
        with suppress(psutil.NoSuchProcess):  # it has ended
            new.append(psutil.Process(pid))
    _, alive = psutil.wait_procs(new, timeout=_LEFT_S)
    assert not alive, f"processes left running: {alive}"


def groups_of(pid: int) -> list[str]:
    """Return the folders of the control groups that a process made."""
    # `Path.glob` fails where another process removes a group meanwhile.
    return glob(f"/sys/fs/cgroup/**/taskweaver-{pid}-*", recursive=True)  # noqa: PTH207
