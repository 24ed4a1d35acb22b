"""Signals that end the work of a command."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

TERMINATED = 128 + signal.SIGTERM


@contextmanager
def handling(number: int, handle: Callable[[], None]) -> Iterator[None]:
    """Call a function at a signal that comes inside the block."""
    before = signal.signal(number, lambda _signal, _frame: handle())
    try:
        yield
    finally:
        signal.signal(number, before)


def ending_orderly() -> AbstractContextManager[None]:
    """Let a termination signal unwind the block, so that kernels are stopped and rounds closed."""
    return handling(signal.SIGTERM, lambda: sys.exit(TERMINATED))
