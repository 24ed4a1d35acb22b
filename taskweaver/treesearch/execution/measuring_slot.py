"""The measuring slot: work of a run shares the machine, and a timed run has it alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

GivenUp = Callable[[], bool]


class MeasuringSlot:
    """Turns at the machine. One that waits for it alone goes before those that would share it.

    Spare work gives way to it.
    """

    def __init__(self, *, is_timed: bool) -> None:
        """Create the slot of a run; where runs are not timed, all of them share the machine."""
        self._is_timed = is_timed
        self._changed = threading.Condition()
        self._sharing = 0
        self._waiting = 0
        self._is_taken = False
        self._spare: list[Callable[[], object]] = []

    @contextmanager
    def shared(
        self, is_given_up: GivenUp, give_way: Callable[[], object] | None = None
    ) -> Iterator[None]:
        """Work beside others; wait while a timed run has the machine, or until given up.

        Spare work is given `give_way`, which ends it: it is called, in another thread, when a timed
        run waits.
        """
        ways = [] if give_way is None else [give_way]
        with self._changed:
            self._changed.wait_for(lambda: is_given_up() or not (self._is_taken or self._waiting))
            self._sharing += 1
            self._spare += ways
        try:
            yield
        finally:
            with self._changed:
                self._sharing -= 1
                for way in ways:
                    self._spare.remove(way)
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
            for give_way in self._spare:
                give_way()
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


class MeasuringSlots:
    """The measuring slots of a run, one for each host."""

    def __init__(self, *, is_timed: bool) -> None:
        """Create the slots of a run; where runs are not timed, all of them share the machines."""
        self.is_timed = is_timed
        self._lock = threading.RLock()  # a handler of a signal calls `wake` in the same thread
        self._slots: dict[str, MeasuringSlot] = {}

    def of(self, host: str) -> MeasuringSlot:
        """Return the slot of a host; the empty name is that of the only one, or of any."""
        with self._lock:
            return self._slots.setdefault(host, MeasuringSlot(is_timed=self.is_timed))

    def wake(self) -> None:
        """Have those that wait look again whether they are given up."""
        with self._lock:
            slots = list(self._slots.values())
        for slot in slots:
            slot.wake()
