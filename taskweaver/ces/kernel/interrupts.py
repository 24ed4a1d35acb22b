"""Interrupts of a kernel's operation, kept from its begin to its end.

An operation may have to start the kernel first, which takes longer than many a cell. An interrupt
that comes meanwhile has no cell to end: it ends the waiting, and the cell does not begin.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from taskweaver.ces.errors import KernelInterrupted
from taskweaver.ces.process.process import KernelProcess

T = TypeVar("T")
_BEFORE = "The cell was interrupted before it began."


class Interrupts:
    """Interrupts of one kernel; `request` and `send` may be called from any thread.

    Attributes:
        sent_at: Time on the monotonic clock at which the process got the first one of the request
            that it works on; None if it got none.
    """

    def __init__(self) -> None:
        self.sent_at: float | None = None
        self._open = 0
        self._is_requested = False
        self._changed = threading.Event()

    @property
    def is_requested(self) -> bool:
        """True if the open operation is to end."""
        return self._is_requested

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep interrupts that come in the block; blocks of one thread may be nested.

        Blocks of several threads must exclude each other.
        """
        if not self._open:
            self._is_requested = False
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    def request(self) -> None:
        """Interrupt the open operation; without one, nothing happens."""
        self._is_requested = self._open > 0
        self._changed.set()

    def send(self, process: KernelProcess) -> None:
        """Interrupt the request that the process works on."""
        self.sent_at = self.sent_at or time.monotonic()
        process.interrupt()

    def check(self) -> None:
        """Raise if the open operation is to end.

        Raises:
            KernelInterrupted: If it is.
        """
        if self._open and self._is_requested:
            raise KernelInterrupted(_BEFORE)

    def result(self, future: Future[T]) -> T:
        """Return the result of a future, unless an interrupt comes first.

        Raises:
            KernelInterrupted: If one came; the future goes on.
        """
        future.add_done_callback(lambda _: self._changed.set())
        while not future.done():
            self.check()
            self._changed.wait()
            self._changed.clear()
        return future.result()
