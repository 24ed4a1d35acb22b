"""Operations of a kernel: one at a time, and between two of them its output is taken."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from taskweaver.ces.kernel.channel import KernelChannel
from taskweaver.ces.kernel.idle_output import IdleOutput
from taskweaver.ces.kernel.interrupts import Interrupts


class Operations:
    """Keeps the operations of a kernel apart, and its channel to one thread at a time.

    Attributes:
        lock: Held by each operation.
    """

    def __init__(self, interrupts: Interrupts, output: IdleOutput) -> None:
        self.lock = threading.RLock()
        self._interrupts = interrupts
        self._output = output
        self._channel: KernelChannel | None = None  # while its output is waited for

    @contextmanager
    def one(self) -> Iterator[None]:
        """Exclude operations of other threads; an interrupt from now on ends those of the block."""
        channel, has_more = None, False
        try:
            with self.lock, self._interrupts.kept():
                if self._channel is not None:
                    self._output.pause(self._channel.output_fd)
                try:
                    yield
                finally:
                    channel = self._channel
                    has_more = channel is not None and channel.take_idle()
        finally:
            # After the lock is free: the thread that waits does not look at a kernel in use.
            if channel is not None:
                self._output.wait(channel.output_fd, has_more=has_more)

    def open(self, channel: KernelChannel) -> None:
        """Take the output of a channel between operations, until `close`."""
        self._channel = channel
        self._output.add(channel.output_fd, self._look)

    def close(self) -> None:
        """Forget the channel, which is closed next."""
        channel, self._channel = self._channel, None
        if channel is not None:
            self._output.forget(channel.output_fd)

    @property
    def last_foreign_request(self) -> float:
        """Time of the last request of another client; see `Client`."""
        if (channel := self._channel) is None:
            return -math.inf
        return time.monotonic() if channel.foreign.running else channel.foreign.last_request

    def _look(self) -> None:
        """Take output, unless an operation runs: that takes it."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            channel = self._channel
            has_more = channel is not None and channel.take_idle()
        finally:
            self.lock.release()
        if channel is not None:
            self._output.wait(channel.output_fd, has_more=has_more)
