"""Settings of Python for a process that serves."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_TURN_S = 0.001


@contextmanager
def prompt_threads() -> Iterator[None]:
    """Keep the event loop from waiting long for other threads of this process.

    A thread that waits for the interpreter gets it after one millisecond instead of five: the event
    loop waits several times a message, other threads after each system call. Garbage collections,
    which stop all threads, leave out all objects that exist at the start.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_S)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before)
