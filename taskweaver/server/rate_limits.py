"""Limits of rate: requests of each token, and failed tokens of each address."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from taskweaver.server.errors import RequestRefused

_MOST_KEYS = 4096


@dataclass(slots=True)
class _Count:
    """A number that falls at a steady rate."""

    value: float
    at_s: float


class _FallingCounts:
    """A falling number for each of at most `_MOST_KEYS` keys; the least recent are forgotten."""

    def __init__(self, per_s: float, clock: Callable[[], float]) -> None:
        self._per_s = per_s
        self._clock = clock
        self._counts: OrderedDict[str, _Count] = OrderedDict()

    def now(self, key: str) -> float:
        """Return the number of a key."""
        found = self._counts.get(key)
        if found is None:
            return 0.0
        return max(0.0, found.value - (self._clock() - found.at_s) * self._per_s)

    def add_one(self, key: str) -> float:
        """Add one; return the new number."""
        value = self.now(key) + 1
        self._counts[key] = _Count(value, self._clock())
        self._counts.move_to_end(key)
        while len(self._counts) > _MOST_KEYS:
            self._counts.popitem(last=False)
        return value


class RequestRate:
    """Requests that each token may make: `per_s` for long, `burst` at once."""

    def __init__(
        self,
        per_s: float = 200.0,
        burst: int = 1000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_s = per_s
        self._burst = burst
        self._counts = _FallingCounts(per_s, clock)

    def count(self, token_id: str) -> None:
        """Count a request.

        Raises:
            RequestRefused: If there are too many; this one is not counted.
        """
        excess = self._counts.now(token_id) + 1 - self._burst
        if excess > 0:
            detail = f"More than {self._per_s:g} requests a second came with this token."
            raise RequestRefused(429, "rate", detail, retry_after_s=excess / self._per_s)
        self._counts.add_one(token_id)


class FailedTokens:
    """Failed tokens of each address: each makes the answer to the next one slower.

    A right token is never slowed, so that a stranger behind the same proxy locks out no user.
    """

    def __init__(
        self,
        first_delay_s: float = 0.05,
        longest_delay_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first_delay_s = first_delay_s
        self._longest_delay_s = longest_delay_s
        self._counts = _FallingCounts(1 / 30, clock)

    def count(self, address: str) -> tuple[int, float]:
        """Count a failure; return the recent ones, and the delay of the answer in seconds."""
        number = round(self._counts.add_one(address))
        delay_s = self._first_delay_s * 2.0 ** min(number - 1, 20)
        return number, min(delay_s, self._longest_delay_s)
