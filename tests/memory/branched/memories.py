"""What the tests of the branched memory share."""

from __future__ import annotations

from collections.abc import Callable

from taskweaver.memory.branched import MemoryManager

Open = Callable[..., MemoryManager]


class Clock:
    """A time that only moves when told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now
