"""Operations of a kernel, one at a time: interrupts, and output between operations.

An operation may have to start the kernel first, which takes longer than many a cell. An interrupt
that comes meanwhile has no cell to end: it ends the waiting, and the cell does not begin.

Other Jupyter clients, and threads that cells left running, make output between the operations of a
kernel. Not taken, it would fill the memory of this process. Where the system has no epoll, as on
macOS, output waits for the next operation.
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar

from taskweaver.ces.errors import KernelInterrupted
from taskweaver.ces.kernel.channel import KernelChannel
from taskweaver.ces.process.process import KernelProcess

T = TypeVar("T")
_BEFORE = "The cell was interrupted before it began."
HAS_EPOLL = hasattr(select, "epoll") and hasattr(os, "eventfd")
_AGAIN_S = 0.1  # between two looks at a kernel that has more than is taken at once


class Interrupts:
    """Interrupts of one kernel. `request` and `send` may be called from any thread.

    Attributes:
        is_requested: Whether the open operation is to end.
        sent_at: Time on the monotonic clock at which the process got the first one of the request
            that it works on; None if it got none.
    """

    def __init__(self) -> None:
        self.sent_at: float | None = None
        self._open = 0
        self.is_requested = False
        self._changed = threading.Event()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep interrupts that come in the block. Blocks of one thread may be nested.

        Blocks of several threads must exclude each other.
        """
        if not self._open:
            self.is_requested = False
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    def request(self) -> None:
        """Interrupt the open operation, if any."""
        self.is_requested = self._open > 0
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
        if self._open and self.is_requested:
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


class IdleOutput:
    """The thread that waits for output, for use by any thread. Close the object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # for all below
        self._looks: dict[int, Callable[[], None]] = {}
        self._more: set[int] = set()
        self._poll: Any = None
        self._thread: threading.Thread | None = None
        self._wake = -1

    def add(self, fd: int, look: Callable[[], None]) -> None:
        """Add a file descriptor until `forget`, with the function `look` that takes the output."""
        if not HAS_EPOLL:
            return
        # Without a descriptor to wait with, output waits for the next operation.
        with self._lock, suppress(OSError):
            poll = self._poll or self._start()
            poll.register(fd, 0)
            self._looks[fd] = look

    def wait(self, fd: int, *, has_more: bool) -> None:
        """Call the `look` of a file descriptor in the thread, once, when readable.

        Args:
            fd: The file descriptor; nothing happens if it was forgotten.
            has_more: Whether there is output already, which is not announced again.
        """
        with self._lock:
            if fd not in self._looks:
                return
            self._poll.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)
            if has_more:
                self._more.add(fd)
                if threading.current_thread() is not self._thread:
                    os.eventfd_write(self._wake, 1)

    def pause(self, fd: int) -> None:
        """Do not wait for a file descriptor while the kernel is asked something."""
        with self._lock:
            if fd in self._looks:
                self._poll.modify(fd, 0)

    def forget(self, fd: int) -> None:
        """Forget a file descriptor, which is closed next."""
        with self._lock:
            self._more.discard(fd)
            if self._looks.pop(fd, None) is not None:
                self._poll.unregister(fd)

    def close(self) -> None:
        """Forget all, and end the thread. Another thread starts with the next kernel."""
        with self._lock:
            self._looks.clear()
            self._more.clear()
            thread, poll, self._thread, self._poll = self._thread, self._poll, None, None
            wake = self._wake
            if thread is not None:
                os.eventfd_write(wake, 1)
        if thread is not None:
            thread.join()
            poll.close()
            os.close(wake)

    def _start(self) -> select.epoll:
        with ExitStack() as stack:  # closes what was opened when the next cannot be
            poll = stack.enter_context(select.epoll())
            wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            stack.callback(os.close, wake)
            poll.register(wake, select.EPOLLIN)
            thread = threading.Thread(
                target=self._work, args=(poll, wake), name="idle-output", daemon=True
            )
            thread.start()
            stack.pop_all()
        self._poll, self._wake, self._thread = poll, wake, thread
        return poll

    def _work(self, poll: select.epoll, wake: int) -> None:
        timeout_s: float | None = None
        while True:
            ready = {fd for fd, _ in poll.poll(timeout_s)}
            if wake in ready:
                os.eventfd_read(wake)
            with self._lock:
                if self._poll is not poll:
                    return
                more, self._more = self._more, set()
                looks = [self._looks[fd] for fd in ready | more if fd in self._looks]
            for look in looks:
                look()
            with self._lock:
                timeout_s = _AGAIN_S if self._more else None


class Operations:
    """Lock that keeps the operations of a kernel apart, and the channel to one thread at a time.

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
        """Exclude operations of other threads. An interrupt ends the operations of the block."""
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
        """Time of the last request of another client (see `Client`)."""
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
