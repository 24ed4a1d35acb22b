"""Environment and import path of a kernel before its first cell.

Only differences from them belong to the stored state, so that the paths and the mark of one
process do not enter another.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field

OWN_VARIABLES = frozenset({"TASKWEAVER_KERNEL_ID"})
"""Variables of the environment that mark the process itself."""


@dataclass(slots=True)
class ProcessBase:
    """Environment and import path as they were before the first cell."""

    environment: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)

    def note(self) -> None:
        """Remember both as they are now."""
        self.environment, self.path = dict(os.environ), list(sys.path)

    def move(self, before: str, after: str) -> None:
        """Follow a process that was forked into another working directory."""
        self.path = [after if entry == before else entry for entry in self.path]


BASE = ProcessBase()
