"""The machine for a timed run: the slot within a run, the turn at the host, the load of others."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from taskweaver.treesearch.errors import SearchError, system_errors

GivenUp = Callable[[], bool]
_LOOK_S = 0.2
_FEWEST_S = 1.0


class MeasuringSlot:
    """Turns at the machine. One that waits for it alone goes before those that would share it.

    Spare work gives way to it.
    """

    def __init__(self, *, is_timed: bool) -> None:
        """Create the slot of a run. Where runs are not timed, all of them share the machine."""
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
        """Work beside others. Wait while a timed run has the machine, or until given up.

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
        """Work with the machine alone, where runs are timed. Wait for it, or until given up."""
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
        """Create the slots of a run. Where runs are not timed, all of them share the machines."""
        self.is_timed = is_timed
        self._lock = threading.RLock()  # a handler of a signal calls `wake` in the same thread
        self._slots: dict[str, MeasuringSlot] = {}

    def of(self, host: str) -> MeasuringSlot:
        """Return the slot of a host. The empty name is that of the only one, or of any."""
        with self._lock:
            return self._slots.setdefault(host, MeasuringSlot(is_timed=self.is_timed))

    def wake(self) -> None:
        """Have those that wait look again whether they are given up."""
        with self._lock:
            slots = list(self._slots.values())
        for slot in slots:
            slot.wake()


@contextmanager
def host_turn(cut_off: threading.Event | None = None) -> Iterator[None]:
    """Wait for the turn at this host, and keep it. It ends with the process at the latest.

    Where `cut_off` is set, the wait ends without the turn.

    Raises:
        SearchError: If its file is not the user's own, or cannot be opened.
    """
    handle = _opened()
    try:
        if cut_off is None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        else:  # the system has no wait for a lock that another thread can end
            while not (_has_taken(handle) or cut_off.wait(_LOOK_S)):
                pass
        yield
    finally:
        os.close(handle)


def check_host_turn() -> None:
    """Check that the turn at this host can be had. Raises as `host_turn`."""
    os.close(_opened())


def _opened() -> int:
    place = Path(tempfile.gettempdir()) / f"taskweaver-measuring-{os.getuid()}.lock"
    with system_errors(f"{place} cannot be opened", "Remove it."):
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if os.fstat(handle).st_uid != os.getuid():
        os.close(handle)
        raise SearchError(f"{place} belongs to another user.", "Remove it.")
    return handle


def _has_taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class HostLoad:
    """Watches a host from its creation on, in a process that does nothing else meanwhile."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._foreign_s = _foreign_s()

    def cpus_of_others(self) -> float | None:
        """Return how many CPUs others kept busy, on average, None where that is not known.

        Time that a hypervisor gave to other machines counts as theirs; the time of this process and
        of its children that have ended does not. Within a second nothing is known.
        """
        seconds, foreign_s = time.monotonic() - self._began, _foreign_s() - self._foreign_s
        return max(0.0, foreign_s) / seconds if seconds >= _FEWEST_S else None


def _foreign_s() -> float:
    """Return the processor time of all other processes since some time in the past, in seconds."""
    own, all_ = sum(os.times()[:4]), psutil.cpu_times()
    return all_.user + all_.nice + all_.system + all_.irq + all_.softirq + all_.steal - own
