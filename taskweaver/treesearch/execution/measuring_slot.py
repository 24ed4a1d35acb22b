"""The measuring slot: work of a run shares the machine, and a timed run has it alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

GivenUp = Callable[[], bool]


class MeasuringSlot:
    """Turns at the machine. One that waits for it alone goes before those that would share it."""

    def __init__(self, *, is_timed: bool) -> None:
        """Create the slot of a run; where runs are not timed, all of them share the machine."""
        self._is_timed = is_timed
        self._changed = threading.Condition()
        self._sharing = 0
        self._waiting = 0
        self._is_taken = False

    @contextmanager
    def shared(self, is_given_up: GivenUp) -> Iterator[None]:
        """Work beside others; wait while a timed run has the machine, or until given up."""
        with self._changed:
            self._changed.wait_for(lambda: is_given_up() or not (self._is_taken or self._waiting))
            self._sharing += 1
        try:
            yield
        finally:
            with self._changed:
                self._sharing -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self, is_given_up: GivenUp) -> Iterator[None]:
        """Work with the machine alone, where runs are timed; wait for it, or until given up."""
        if not self._is_timed:
            with self.shared(is_given_up):
                yield
            return
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: is_given_up() or not (self._is_taken or self._sharing))
            self._waiting -= 1
            has_it = not (self._is_taken or self._sharing)
            self._is_taken = self._is_taken or has_it
        try:
            yield
        finally:
            with self._changed:
                if has_it:
                    self._is_taken = False
                self._changed.notify_all()

    def wake(self) -> None:
        """Have those that wait look again whether they are given up."""
        with self._changed:
            self._changed.notify_all()
