"""Countdown of the events a branch takes before those in its view have to be counted again.

A branch with c events in view needs no count before threshold + 1 - c more. A fork has the view
of its parent, so it goes on from the parent's number. A number that is too small costs one count
more than needed; another process's appends make one too large, and a consolidation late by as many
events.
"""

from __future__ import annotations

import threading

from taskweaver.memory.branched.types import EMPTY, Branch

_MOST_KEPT = 8192


class Countdown:
    """The numbers of the branches of one file, for one process."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._lock = threading.Lock()
        self._left: dict[int, int] = {}
        self._due: set[str] = set()

    def appended(self, branch: Branch, branch_id: str) -> None:
        """Note an event on a branch.

        Args:
            branch: The branch.
            branch_id: The name that the caller has for it, and asks `is_due` with.
        """
        with self._lock:
            left = self._left.get(branch.number, 0) - 1
            if branch.live:  # its descendants see the event too
                self._left.clear()
            self._left[branch.number] = left
            if left <= 0:
                self._due.add(branch_id)

    def forked(self, child: int, parent: int | None) -> None:
        """Note a new branch.

        Args:
            child: Its number.
            parent: Number of the branch whose present view it starts from; `EMPTY` for a root,
                None for a branch that starts from the past.
        """
        with self._lock:
            left = self._threshold + 1 if parent == EMPTY else self._left.get(parent or EMPTY)
            if left is None:
                self._left.pop(child, None)
            else:
                self._left[child] = left

    def is_due(self, branch_id: str) -> bool:
        """Return whether the events of a branch have to be counted now; they are, then."""
        with self._lock:
            is_due = branch_id in self._due
            self._due.discard(branch_id)
            if len(self._left) > _MOST_KEPT or len(self._due) > _MOST_KEPT:
                self._left.clear()
                self._due.clear()
            return is_due

    def counted(self, branch: Branch, left: int) -> None:
        """Note how many more events a branch takes before the next count."""
        with self._lock:
            self._left[branch.number] = left

    def forget(self) -> None:
        """Forget every number, after rows were removed or undone: a digest may be among them.

        An undone branch leaves its number to another one.
        """
        with self._lock:
            self._left.clear()
