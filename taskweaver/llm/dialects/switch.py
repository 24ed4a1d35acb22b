"""The protocol that is spoken with an endpoint, where it speaks more than one."""

from __future__ import annotations

import threading

from taskweaver.llm.dialects.dialect import Dialect


class DialectSwitch:
    """The dialect in force at an endpoint; thread-safe."""

    def __init__(
        self,
        first: Dialect,
        *,
        fallback: Dialect | None = None,
        for_reasoning: Dialect | None = None,
    ) -> None:
        """Begin with `first`.

        Args:
            first: The dialect to begin with.
            fallback: The dialect for an endpoint that does not know the first one's path.
            for_reasoning: The dialect for a model that reasons beside tools in no other.
        """
        self._lock = threading.Lock()
        self._current = first
        self._fallback = fallback
        self._for_reasoning = for_reasoning

    @property
    def current(self) -> Dialect:
        """The dialect in force."""
        return self._current

    def refuse_path(self, asked: Dialect) -> bool:
        """Leave a dialect whose path is unknown; return whether another is in force."""
        with self._lock:
            return self._leave(asked, self._fallback, back_to=None)

    def refuse_reasoning(self, asked: Dialect) -> bool:
        """Leave a dialect that takes tools without reasoning; return whether another is in force.

        An endpoint that does not know the other's path gets this one again.
        """
        with self._lock:
            return self._leave(asked, self._for_reasoning, back_to=asked)

    def _leave(self, asked: Dialect, other: Dialect | None, back_to: Dialect | None) -> bool:
        if asked is not self._current:
            return True  # another call was faster
        if other is None:
            return False
        self._current, self._fallback, self._for_reasoning = other, back_to, None
        return True
