"""Standard output of cells, limited where it is written.

A cell may print without end; what is over the limit is counted and dropped here, so that
neither the kernel, nor the connection, nor the reader ever holds it.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from ipykernel.iostream import OutStream  # noqa: TID253 - this module runs inside the kernel

_PIPE_BYTES = 1 << 16


class OutputBudget:
    """What the current cell may still print; shared by both streams.

    Attributes:
        dropped_chars: How much was left out in this cell.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.limit_bytes = 0
        self._left = 0
        self.dropped_chars = 0

    def renew(self) -> None:
        """Begin a cell."""
        with self._lock:
            self._left = self.limit_bytes
            self.dropped_chars = 0

    def take(self, text: str) -> str:
        """Return the part of `text` that may be printed."""
        data = b"" if text.isascii() else text.encode("utf-8", "replace")
        size_bytes = len(data) or len(text)
        with self._lock:
            if size_bytes <= self._left:
                self._left -= size_bytes
                return text
            head = (data or text.encode())[: self._left]
            self._left = 0
            allowed = head.decode(errors="ignore")
            self.dropped_chars += len(text) - len(allowed)
        return allowed

    def free(self) -> None:
        """Drop the lock in a forked process, where the thread that held it does not exist."""
        self._lock = threading.Lock()


BUDGET = OutputBudget()
os.register_at_fork(after_in_child=BUDGET.free)


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class LimitedStream(OutStream):
    """A kernel's stdout or stderr that keeps to the budget and flushes only what was written."""

    _is_dirty = False
    heir: Any = None
    """The stream that took this one's place when its process was forked."""

    def write(self, string: str) -> int:
        """Print what the budget allows; return the length of the whole."""
        if self.heir is not None:
            return int(self.heir.write(string))
        if not isinstance(string, str):
            raise TypeError(f"write() argument must be str, not {type(string).__name__}")
        allowed = BUDGET.take(string)
        if allowed:
            self._is_dirty = True
            super().write(_encodable(allowed))
        return len(string)

    def flush(self) -> None:
        """Send what was written; hand nothing over when there is nothing."""
        if self.heir is not None:
            self.heir.flush()
        if self._is_dirty:
            self._is_dirty = False
            super().flush()

    def _watch_pipe_fd(self) -> None:
        """Read what native code and child processes print; the log gets what the reader gets."""
        fd: Any = self._fid
        while self._should_watch:
            data = os.read(fd, _PIPE_BYTES)
            if not data:
                return
            text = data.decode(errors="replace")
            before = BUDGET.dropped_chars
            self.write(text)
            if BUDGET.dropped_chars == before:
                os.write(self._original_stdstream_copy, data)
