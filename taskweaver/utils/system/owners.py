"""Owners by process id: checks whether one has ended, and names the id namespace."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

_MOST_DIGITS = 9  # of a process id; any user may write another name


def has_ended(owner: str) -> bool:
    """Return whether a text is the number of a process that does not run any more."""
    is_number = owner.isascii() and owner.isdigit() and len(owner.lstrip("0")) <= _MOST_DIGITS
    return is_number and not psutil.pid_exists(int(owner))


@cache
def pid_namespace() -> int:
    """Return the number of the namespace that this process's id is of; 0 where there are none."""
    with suppress(OSError):
        return Path("/proc/self/ns/pid").stat().st_ino
    return 0
