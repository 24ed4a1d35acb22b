"""The tasks of a worker pool, in their order, and who takes the next one."""

from __future__ import annotations

import queue
import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class TaskQueue(Generic[T]):
    """Tasks that wait for a slot; a slot without a process leaves them to the idle processes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._tasks: deque[T] = deque()
        self._idle = 0

    def put(self, *tasks: T) -> None:
        """Add tasks at the end."""
        with self._changed:
            self._tasks.extend(tasks)
            self._changed.notify_all()

    def expect(self, process: object | None) -> None:
        """Count a slot's process, if there is one, as idle: it is about to ask for a task."""
        if process is not None:
            with self._changed:
                self._idle += 1

    def take_for_process(self, idle_s: float | None) -> T:
        """Return the next task for an idle process, which is idle no longer.

        Raises:
            queue.Empty: If none came within `idle_s`; None waits without end.
        """
        with self._changed:
            is_there = self._changed.wait_for(lambda: len(self._tasks) > 0, idle_s)
            self._idle -= 1
            if not is_there:
                self._changed.notify_all()
                raise queue.Empty
            return self._tasks.popleft()

    def take(self) -> T:
        """Return the next task that no idle process takes."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._tasks) > self._idle)
            return self._tasks.popleft()
