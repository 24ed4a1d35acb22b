"""A check that nothing is left running."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import psutil

_LEFT_S = 60.0
"""Longest time that something may take to end; what stays longer was left behind."""


class Warm(Protocol):
    """What starts processes that tests share."""

    @property
    def pids(self) -> set[int]:
        """Ids of those that are there now."""


def _pids_below(pid: int) -> set[int]:
    """Return the processes below one; most tests have none, which is cheap to see."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = {int(child) for task in tasks for child in (task / "children").read_text().split()}
    return children.union(*map(_pids_below, children))


def _descendants(warm: Sequence[Warm]) -> list[psutil.Process]:
    """Return the processes below this one, without the warm ones."""
    kept = set().union(*(one.pids for one in warm))
    try:
        is_alone = _pids_below(os.getpid()) == kept
    except OSError:  # one of them has just ended, or the system has no such files
        is_alone = False
    found = [] if is_alone else psutil.Process().children(recursive=True)
    kept = kept.union(*(one.pids for one in warm))  # a browser starts some at any time
    return [process for process in found if process.pid not in kept]


@contextmanager
def nothing_left(*warm: Warm) -> Iterator[None]:
    """Fail if the block leaves a child process or a non-daemon thread behind."""
    threads = set(threading.enumerate())
    children = {child.pid for child in _descendants(warm)}
    yield
    late = [t for t in threading.enumerate() if t not in threads and not t.daemon]
    for thread in late:
        thread.join(_LEFT_S)
    assert not [t for t in late if t.is_alive()], "threads left running"
    new = [c for c in _descendants(warm) if c.pid not in children]
    _, alive = psutil.wait_procs(new, timeout=_LEFT_S)
    assert not alive, f"processes left running: {alive}"
