"""The systems this package runs on: the parts that need a certain system, process ids, signals."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from taskweaver.errors import TaskWeaverError

SYSTEM = sys.platform
"""The system, as `sys.platform` names it."""

HAS_LIVE_FORKS = SYSTEM == "linux" and hasattr(os, "pidfd_open")
"""Whether a running kernel can be forked with its variables, and a warm one be kept."""

_NAMES = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}
_MACOS = (
    "macOS: chats, plugins and roles work; code runs with your rights, for there is no sandbox."
    " Kernels are not forked, and variables are not stored: /rebuild runs the cells again after"
    " /fork, /undo and --resume. Searches need Linux."
)

_MOST_DIGITS = 9  # of a process id; any user may write another name


class UnsupportedPlatform(TaskWeaverError, ImportError):
    """This system cannot run sessions."""

    def __str__(self) -> str:
        """Name the system, and the systems that can."""
        if SYSTEM == "win32":
            return "Windows: use WSL 2, https://aka.ms/wsl, and install TaskWeaver in its Linux."
        return f"TaskWeaver runs on Linux, macOS and Windows with WSL 2, not on {system_name()}."


@dataclass(eq=False, repr=False)
class NeedsLinux(TaskWeaverError):
    """A part of this package that works on Linux alone was used elsewhere."""

    part: str

    def __str__(self) -> str:
        """Name the part and this system."""
        return f"{self.part} needs Linux; this is {system_name()}."


def system_name() -> str:
    """Return the name of this system in common words."""
    return _NAMES.get(SYSTEM, SYSTEM)


def restrictions() -> str:
    """Return a line on the parts that do not work on this system, empty where all parts do."""
    return _MACOS if SYSTEM == "darwin" else ""


def require_supported() -> None:
    """Check that sessions run on this system, before modules are imported that may be missing.

    Raises:
        UnsupportedPlatform: If they do not.
    """
    if SYSTEM not in {"linux", "darwin"}:
        raise UnsupportedPlatform


def require_linux(part: str) -> None:
    """Check that this is Linux. `part` is the part that needs Linux, as a subject.

    Raises:
        NeedsLinux: If it is not.
    """
    if SYSTEM != "linux":
        raise NeedsLinux(part)


def has_process_handles() -> bool:
    """Return whether the system gives handles of processes that never mean another process."""
    return hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")


def has_ended(owner: str) -> bool:
    """Return whether a text is the number of a process that does not run any more."""
    import psutil

    is_number = owner.isascii() and owner.isdigit() and len(owner.lstrip("0")) <= _MOST_DIGITS
    return is_number and not psutil.pid_exists(int(owner))


@cache
def pid_namespace() -> int:
    """Return the number of the namespace of this process's id, or 0 without namespaces."""
    with suppress(OSError):
        return Path("/proc/self/ns/pid").stat().st_ino
    return 0


def signal_name(number: int) -> str:
    """Return the name of a signal, or a number for most of the real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
