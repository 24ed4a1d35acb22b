"""The keyboard while nobody reads it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

try:
    import termios
except ImportError:
    HAS_TERMIOS = False
else:
    HAS_TERMIOS = True


@contextmanager
def silent_keyboard() -> Iterator[None]:
    """Keep keys from being drawn into the live region; the next prompt gets them.

    Ctrl-C goes on working.
    """
    if not HAS_TERMIOS or sys.stdin is None or not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    quiet = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
