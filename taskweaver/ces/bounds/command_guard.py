"""The bounds of one command outside of kernels."""

from __future__ import annotations

import time
from pathlib import Path

from taskweaver.ces.bounds.bound import KEYS
from taskweaver.ces.bounds.cgroup import ControlGroup
from taskweaver.ces.bounds.processes import family, running_processes
from taskweaver.ces.bounds.watcher import Breach, WatchedLimits, Watcher

_SLICE_S = 0.25


class CommandGuard:
    """Keeps a command within its bounds, in the thread that waits for it. Close it.

    Attributes:
        slice_s: Longest time between two looks; None where nothing needs to be looked at.
    """

    def __init__(
        self, group: ControlGroup, pid: int, limits: WatchedLimits, workspace: Path
    ) -> None:
        self._group = group
        self._pid = pid
        self._watcher = Watcher(limits)
        self._watcher.add_folder(workspace)
        self._watcher.begin()
        self._breaches: list[Breach] = []
        self.slice_s = _SLICE_S if limits != WatchedLimits() else None
        # What has just begun has no size yet, and many commands end before it is time.
        self._due = time.monotonic() + _SLICE_S

    @property
    def is_exceeded(self) -> bool:
        """True if the command must end, and must not count as done."""
        return any(breach.stops for breach in self._breaches)

    def look(self) -> bool:
        """Measure if it is time; return whether the command has to end."""
        now = time.monotonic()
        if self.slice_s is None or now < self._due:
            return False
        self._due = now + self.slice_s
        self._breaches += self._watcher.look(family(running_processes(), {self._pid}), ())
        return self.is_exceeded

    def finish(self) -> str:
        """Return a sentence for each bound that was exceeded. Call it before the end.

        A command that is over has filled its workspace already: it is measured once more.
        """
        if self.slice_s is not None:
            self._breaches += self._watcher.look({}, (), is_last=True)
        events = self._group.events()
        texts = [breach.text for breach in self._breaches]
        if events.killed:
            key = KEYS["memory"]
            texts.append(f"Memory reached all that {key} allows. The system ended a process.")
        if events.refused:
            key = KEYS["processes"]
            texts.append(f"Processes and threads reached all that {key} allows.")
        return " ".join(dict.fromkeys(texts))

    def close(self) -> None:
        """Break the measuring off."""
        self._watcher.close()
