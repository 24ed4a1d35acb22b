"""Standard output of cells, limited at the point where it is written.

A cell may print without end. Text over the limit is counted and dropped here, so that neither the
kernel, nor the connection, nor the reader ever holds it.
"""

from __future__ import annotations

import os
import select
import threading
from typing import Any

from ipykernel.iostream import OutStream  # noqa: TID253 - this module runs inside the kernel

_PIPE_BYTES = 1 << 16
_MOST_READS = 64
"""Of one flush: a program in the background may print without end."""


class OutputBudget:
    """Number of characters the current cell may still print; shared by both streams.

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
    """A kernel's stdout or stderr that keeps to the budget and never flushes an empty buffer."""

    _is_dirty = False
    heir: Any = None
    """The stream that took this one's place when its process was forked."""

    def write(self, string: str) -> int:
        """Print as much as the budget allows; return the length of the whole text."""
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
        """Send the buffered text; do nothing when the buffer is empty."""
        if self.heir is not None:
            self.heir.flush()
        else:
            self._take_all()
        if self._is_dirty:
            self._is_dirty = False
            super().flush()

    def _setup_stream_redirects(self, name: str) -> None:
        # Set before the reading thread starts; no other thread has the stream yet.
        self._reading = threading.RLock()
        super()._setup_stream_redirects(name)

    def _watch_pipe_fd(self) -> None:
        """Read the output of native code and of child processes."""
        fd: Any = self._fid
        ready = select.poll()
        ready.register(fd, select.POLLIN)
        while self._should_watch:
            ready.poll()
            with self._reading:
                if ready.poll(0) and not self._take_some():
                    return

    def _take_all(self) -> None:
        """Read the pipe until it is empty, so that a cell's output has its programs' output."""
        fd: Any = getattr(self, "_fid", None)
        if fd is None or not self._should_watch or not self._is_master_process():
            return  # a process that a cell forked shares the pipe, and not the lock
        ready = select.poll()
        ready.register(fd, select.POLLIN)
        with self._reading:
            for _ in range(_MOST_READS):
                if not ready.poll(0) or not self._take_some():
                    return

    def _take_some(self) -> bool:
        """Move a block from the pipe to the stream and the log; return False at the pipe's end."""
        fd: Any = self._fid
        data = os.read(fd, _PIPE_BYTES)
        if not data:
            return False
        before = BUDGET.dropped_chars
        self.write(data.decode(errors="replace"))
        if BUDGET.dropped_chars == before:
            os.write(self._original_stdstream_copy, data)
        return True
