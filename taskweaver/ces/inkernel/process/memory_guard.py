"""Protection of a template's memory from the code of its session.

A template and the kernels in its sandbox have the same user, so a kernel may open
``/proc/PID/mem`` of the template and rewrite it; every later kernel would start from that. A
process that is not dumpable is closed to others. Its owner outside reads how much memory it uses
from a file that the process hands over, see `ces.process.footprint`. Without a namespace for users
the protection is left out: the owner finds the processes of a sandbox by their environment, which
an ordinary user could not read then, and no namespace ends them.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

_SET_DUMPABLE, _GET_NO_NEW_PRIVILEGES = 4, 39
_WHOLE_RANGE = ["0", "0", "4294967295"]


def close_memory() -> None:
    """Close this process's memory to other processes, if it is in a sandbox with namespaces."""
    libc = ctypes.CDLL(None)
    if libc.prctl(_GET_NO_NEW_PRIVILEGES, 0, 0, 0, 0) == 1 and _has_own_users():
        libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def open_memory() -> None:
    """Undo `close_memory` in a forked process, which inherits it and becomes a kernel."""
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1, 0, 0, 0)


def _has_own_users() -> bool:
    """Return whether this process is in a user namespace that is not the machine's."""
    try:
        return Path("/proc/self/uid_map").read_text("ascii").split() != _WHOLE_RANGE
    except OSError:
        return False
