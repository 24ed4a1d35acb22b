"""Standard output of cells, limited at the point of writing.

A cell may print without end. Text over the limit is counted and dropped here, so that neither the
kernel, nor the connection, nor the reader ever holds it.
"""

from __future__ import annotations

import os
import select
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ipykernel.iostream import OutStream  # noqa: TID253 - this module runs inside the kernel

from taskweaver.ces.inkernel.cell.current import FOREIGN

_PIPE_BYTES = 1 << 16
_MOST_READS = 64
"""Of one flush: a program in the background may print without end."""


_LATE = "Output of earlier cells, which came after their end:\n"


class OutputBudget:
    """Number of bytes the current cell may still print, shared by both streams.

    Half of the limit goes out as it is written. The rest is held, with the end of it kept, until
    the cell ends; so is what is written between cells, until the next one begins.

    Attributes:
        limit_bytes: The limit.
        silent: The thread whose output is for nobody; 0 for none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.limit_bytes = 0
        self.silent = 0
        self._left = 0
        self._is_late = False
        self._held: deque[tuple[LimitedStream, bytearray]] = deque()
        self._size = 0
        self._lost: Counter[LimitedStream] = Counter()

    @property
    def dropped_chars(self) -> int:
        """Number of characters left out since the last `flush`."""
        return self._lost.total()

    def renew(self) -> None:
        """Begin a cell."""
        self.flush(_LATE)
        self._is_late = False
        self.admit()

    def admit(self) -> None:
        """Let output go out while being written."""
        self._left = self.limit_bytes // 2

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Drop the output of this thread inside the block. Other threads print as before."""
        self.silent = threading.get_ident()
        try:
            yield
        finally:
            self.silent = 0

    def say_late(self, stream: LimitedStream) -> None:
        """Say once in a cell that output of earlier cells follows."""
        if self._left and not self._is_late:
            self._is_late = True
            stream.send(_LATE)

    def take(self, stream: LimitedStream, text: str) -> str:
        """Return the part of `text` that may be printed now, in characters that can be sent."""
        data = text.encode("utf-8", "replace")
        with self._lock:
            if len(data) <= self._left:
                self._left -= len(data)
                return data.decode()
            head = data[: self._left].decode(errors="ignore")
            self._left = 0
            self._hold(stream, data[len(head.encode()) :])
        return head

    def _hold(self, stream: LimitedStream, data: bytes) -> None:
        """Keep the end of what does not go out now."""
        if not self._held or self._held[-1][0] is not stream:
            self._held.append((stream, bytearray()))
        self._held[-1][1].extend(data)
        self._size += len(data)
        over = self._size - self.limit_bytes // 2
        while over > 0:
            first, block = self._held[0]
            cut = block[:over]
            del block[:over]
            self._lost[first] += len(cut.decode(errors="ignore"))
            self._size -= len(cut)
            over -= len(cut)
            if not block:
                self._held.popleft()

    def flush(self, title: str = "") -> None:
        """Print the held output, with a line about the part left out, and hold later output."""
        with self._lock:
            held, self._held = self._held, deque()
            lost, self._lost = self._lost, Counter()
            self._left = self._size = 0
        for stream in dict.fromkeys(one for one, _ in held):
            text = b"".join(data for one, data in held if one is stream).decode(errors="ignore")
            note = f"\n... {lost[stream]:,} characters left out ...\n" if lost[stream] else ""
            stream.send(f"{title}{note}{text}")

    def free(self) -> None:
        """Drop in a forked process what is held, and the lock, whose owner may not exist there."""
        self._lock = threading.Lock()
        self._held.clear()
        self._lost.clear()
        self._size = 0


BUDGET = OutputBudget()
os.register_at_fork(after_in_child=BUDGET.free)


class LimitedStream(OutStream):
    """A kernel's stdout or stderr that keeps to the budget and never flushes an empty buffer."""

    _is_dirty = False
    heir: Any = None
    """The stream that took this one's place when its process was forked."""

    def write(self, string: str) -> int:
        """Print as much as the budget allows, and return the length of the whole text."""
        if self.heir is not None:
            return int(self.heir.write(string))
        if not isinstance(string, str):
            raise TypeError(f"write() argument must be str, not {type(string).__name__}")
        if not BUDGET.silent or BUDGET.silent != threading.get_ident():
            self._print(string)
        return len(string)

    def _print(self, string: str) -> None:
        now = self._parent_header_global
        if self._parent_header.get(now) is not now and not FOREIGN.is_running:
            BUDGET.say_late(self)  # a task of an earlier cell; of a thread nobody knows that
        self.send(BUDGET.take(self, string))

    def send(self, text: str) -> None:
        """Print a text that the budget allows."""
        if self.heir is not None:
            self.heir.send(text)
        elif text:
            self._is_dirty = True
            super().write(text)

    def close(self) -> None:
        """Stay open for later cells. The end of the process closes the stream."""
        self.flush()

    def flush(self) -> None:
        """Send the buffered text, if any."""
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
        """Empty the pipe, so that a cell's output includes the output of programs."""
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
        """Move a block from the pipe to the stream and the log. Return False at the pipe's end."""
        fd: Any = self._fid
        data = os.read(fd, _PIPE_BYTES)
        if not data:
            return False
        before = BUDGET.dropped_chars
        self._print(data.decode(errors="replace"))  # whichever thread reads it
        if BUDGET.dropped_chars == before:
            os.write(self._original_stdstream_copy, data)
        return True
