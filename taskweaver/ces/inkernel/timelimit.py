"""A time limit for plugin code that runs outside of cells."""

from __future__ import annotations

import faulthandler
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_GRACE_S = 2.0


class TooSlow(BaseException):
    """The limit has passed. No `except Exception` of a plugin swallows this."""


@contextmanager
def time_limit(limit_s: float) -> Iterator[None]:
    """Stop the block after `limit_s` seconds, only in the main thread.

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


@contextmanager
def hard_time_limit(limit_s: float) -> Iterator[None]:
    """Stop the block as `time_limit` does. A block that goes on ends the process soon after.

    So does one in which no Python code runs that could be stopped.
    """
    log = sys.__stderr__ or 2  # what the standard output and error of cells are not
    faulthandler.dump_traceback_later(limit_s + _GRACE_S, exit=True, file=log)
    try:
        with time_limit(limit_s):
            yield
    finally:
        faulthandler.cancel_dump_traceback_later()
