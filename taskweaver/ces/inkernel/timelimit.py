"""A limit on the time that code of others takes outside of cells."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class TooSlow(BaseException):
    """It took too long; no `except Exception` of the code's may swallow it."""


@contextmanager
def time_limit(limit_s: float) -> Iterator[None]:
    """Stop the block after `limit_s` seconds; only in the main thread.

    Raises:
        TooSlow: In the block, when its time is over; again each second until it ends.
    """

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_s, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
