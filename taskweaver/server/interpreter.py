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

    Whoever waits for the interpreter gets it after a millisecond instead of five: the loop asks
    for it several times a message, and so does each system call of an answer. What was loaded
    before is left out of garbage collections, which stop all threads for as long as they last.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_S)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before)
