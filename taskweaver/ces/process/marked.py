"""Processes found by a mark in their environment: those they started carry it, too."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack

import psutil

from taskweaver.ces.environment import KERNEL_MARK
from taskweaver.ces.process import watch
from taskweaver.ces.process.handles import OWNED, has_ended, wait_for_ends
from taskweaver.utils.ids import create_id
from taskweaver.utils.system.owners import has_ended as owner_has_ended
from taskweaver.utils.system.owners import pid_namespace

_LOOKS, _QUIET_LOOKS, _WARY_LOOKS = 20, 2, 5
_ENVIRONMENT_BYTES = 32 << 10


def kill_marked(value: str, variable: str = KERNEL_MARK) -> bool:
    """Kill every process whose environment carries a mark, unless this process owns it.

    Returns:
        Whether there was any.
    """
    return _search(value, variable)(True)


def kill_all_marked(value: str, variable: str = KERNEL_MARK, *, is_prefix: bool = False) -> bool:
    """Kill what carries a mark until none is left; return whether that was reached.

    A look may miss what was just forked by one that is gone. So two looks in a row must find
    nothing, or five once something was found; the last one is at all processes. With `is_prefix`
    the value is the beginning of several marks.
    """
    kill = _search(value, variable, is_prefix=is_prefix)
    quiet, enough = 0, _QUIET_LOOKS
    for _ in range(_LOOKS):
        if kill(quiet == enough - 1):
            quiet, enough = 0, _WARY_LOOKS
        else:
            quiet += 1
        if quiet == enough:
            return True
    return False


def owned_mark() -> str:
    """Return a mark that names this process as the owner; all of them are of one length."""
    return create_id(f"{_owned_prefix()}{os.getpid():010d}")


def sweep_marked() -> bool:
    """Kill the processes that carry a mark of an owner that was killed before it could end them.

    A sandbox ends with its owner, except in a moment of its start, when bubblewrap waits for a part
    of itself.

    Returns:
        Whether there was any.
    """
    prefix = f"{KERNEL_MARK}={_owned_prefix()}".encode()

    def is_orphaned(entries: list[bytes]) -> bool:
        entry = next((entry for entry in entries if entry.startswith(prefix)), b"")
        owner = entry.removeprefix(prefix).partition(b"-")[0]
        return owner_has_ended(os.fsdecode(owner))

    return _Search(prefix, is_orphaned).kill(is_full=True)


def _owned_prefix() -> str:
    """Return the start of the marks of this namespace: process ids of another mean others."""
    return f"box-{pid_namespace()}-"


def _search(value: str, variable: str, *, is_prefix: bool = False) -> Callable[[bool], bool]:
    """Return a function that kills what carries a mark; see `_Search.kill`."""
    if not watch.HAS_HANDLES:
        return lambda _: watch.kill_by_environment(variable, value, OWNED)
    entry = f"{variable}={value}".encode()
    if is_prefix:
        return _Search(entry, lambda all_: any(one.startswith(entry) for one in all_)).kill
    return _Search(entry, lambda entries: entry in entries).kill


class _Search:
    """Looks for processes by their environments; each look begins with those that are new.

    So little time passes between the list of processes and a look at one that may fork, and be
    gone, at any moment.
    """

    def __init__(self, beginning: bytes, is_meant: Callable[[list[bytes]], bool]) -> None:
        """Prepare it.

        Args:
            beginning: Bytes that every environment holds that is meant; others are not taken apart.
            is_meant: Decides by the entries of an environment.
        """
        self._beginning = beginning
        self._is_meant = is_meant
        self._listed: set[int] = set()
        self._others: set[int] = set()

    def kill(self, is_full: bool) -> bool:  # noqa: FBT001 - called through a `Callable`
        """Kill the processes that are meant, except those with a handle here.

        A look that is not full leaves out the processes that an earlier one found not to be meant.

        Returns:
            Whether there was any.
        """
        listed = set(psutil.pids())
        self._others = set() if is_full else self._others & listed
        present = listed - self._others
        new = present - self._listed
        with ExitStack() as handles:
            found = []
            for pid in (*new, *(present - new)):
                try:
                    handle = self._kill(pid, handles)
                except OSError:
                    continue  # gone, or of another user
                if handle is not None:
                    found.append(handle)
            wait_for_ends(found)
        self._listed = listed
        return bool(found)

    def _kill(self, pid: int, handles: ExitStack) -> int | None:
        """Kill a process that is meant; return its handle, or None.

        Raises:
            OSError: If it has ended, or is another user's.
        """
        if not self._is_one(pid):
            return None
        handle = os.pidfd_open(pid)
        handles.callback(os.close, handle)
        # Until it was held, its number could become another's.
        if not self._is_one(pid) or pid in OWNED or has_ended(handle):
            return None
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return handle

    def _is_one(self, pid: int) -> bool:
        environment = _environment(pid)
        if self._beginning in environment and self._is_meant(environment.split(b"\0")):
            return True
        if environment:  # a process that is about to run a program has none
            self._others.add(pid)
        return False


def _environment(pid: int) -> bytes:
    """Return the environment of a process; that of each is read when a command ends.

    Raises:
        OSError: If it has ended, or is another user's.
    """
    fd = os.open(f"/proc/{pid}/environ", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.read(fd, _ENVIRONMENT_BYTES)
        while part := os.read(fd, _ENVIRONMENT_BYTES):
            found += part
    finally:
        os.close(fd)
    return found
