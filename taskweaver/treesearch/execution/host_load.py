"""The processor time that other processes of a host use while a program is timed."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")
_FEWEST_S = 1.0
_BUSY = (0, 1, 2, 5, 6, 7)
"""Fields of the first line of `_STAT`: user, nice, system, irq, softirq, steal; proc_stat(5)."""


class HostLoad:
    """Watches a host from its creation on, in a process that does nothing else meanwhile."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._foreign_s = _foreign_s()

    def cpus_of_others(self) -> float | None:
        """Return how many CPUs others kept busy, on average; None where that is not known.

        Time that a hypervisor gave to other machines counts as theirs; the time of this process and
        of its children that have ended does not. Within a second nothing is known.
        """
        seconds, now = time.monotonic() - self._began, _foreign_s()
        if self._foreign_s is None or now is None or seconds < _FEWEST_S:
            return None
        return max(0.0, now - self._foreign_s) / seconds


def _foreign_s() -> float | None:
    """Return the processor time of all other processes since some time in the past, in seconds."""
    own = os.times()
    try:
        fields = _STAT.read_text("ascii").partition("\n")[0].split()[1:]
        busy = sum(int(fields[place]) for place in _BUSY)
    except (OSError, ValueError, IndexError):
        return None
    return busy / os.sysconf("SC_CLK_TCK") - sum(own[:4])
