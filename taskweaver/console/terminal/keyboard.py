"""State of the keyboard while no prompt reads it."""

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


def is_keyboard() -> bool:
    """Return whether standard input is a keyboard."""
    return HAS_TERMIOS and sys.stdin is not None and sys.stdin.isatty()


def discard_typed() -> None:
    """Discard typed input, so that it does not answer a later question."""
    if is_keyboard():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextmanager
def silent_keyboard() -> Iterator[None]:
    """Keep keys from being drawn into the live region; the next prompt gets them.

    Ctrl-C goes on working.
    """
    if not is_keyboard():
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
