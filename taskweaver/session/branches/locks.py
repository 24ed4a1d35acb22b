"""The branches of a session that are at work: one thing at a time on each, many side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from taskweaver.session.errors import SessionBusy, SessionClosed

PAST = ".past"
"""Name of the place of past moments among the branches of a session; no branch can have it."""


class BranchLocks:
    """Locks of a session's branches; thread-safe.

    Attributes:
        is_closed: Whether the session was stopped.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._is_held_whole = self.is_closed = False
        self._at_rest: Callable[[], None] | None = None

    @property
    def busy(self) -> frozenset[str]:
        """Names of the branches that are at work."""
        with self._lock:
            return frozenset(self._busy)

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Hold a branch inside the block.

        Raises:
            SessionBusy: If it is at work.
            SessionClosed: If the session was stopped.
        """
        self.take(name)
        try:
            yield
        finally:
            self.give_back(name)

    def take(self, name: str) -> None:
        """Hold a branch until it is given back; raises as `hold`."""
        with self._lock:
            self._require_rest(name)
            self._busy.add(name)

    def give_back(self, name: str) -> None:
        """End the hold of a branch."""
        with self._lock:
            self._busy.discard(name)
        self._end_at_rest()

    @contextmanager
    def hold_all(self) -> Iterator[None]:
        """Hold all branches inside the block; raises as `hold`."""
        with self._lock:
            self._require_rest(*self._busy)
            self._is_held_whole = True
        try:
            yield
        finally:
            with self._lock:
                self._is_held_whole = False
            self._end_at_rest()

    def _require_rest(self, *names: str) -> None:
        if self.is_closed:
            raise SessionClosed("This session was stopped; start another one.")
        if self._is_held_whole or not self._busy.isdisjoint(names):
            busy = ", ".join(sorted(self._busy.intersection(names))) or "all"
            if busy == PAST:
                raise SessionBusy("A table of a past moment is being read; wait.")
            raise SessionBusy(
                f"This session is still answering (branch {busy}); wait, or interrupt it."
            )

    def refuse(self) -> None:
        """Refuse further holds."""
        self.is_closed = True

    def close(self, at_rest: Callable[[], None]) -> None:
        """Refuse further holds; `at_rest` is called once no branch is at work, perhaps now."""
        with self._lock:
            self.is_closed, self._at_rest = True, at_rest
        self._end_at_rest()

    def _end_at_rest(self) -> None:
        with self._lock:
            if self._busy or self._is_held_whole:
                return
            at_rest, self._at_rest = self._at_rest, None
        if at_rest is not None:
            at_rest()
