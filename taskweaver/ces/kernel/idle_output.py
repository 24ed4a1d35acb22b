"""Output of idle kernels: one thread takes that of all of them as it comes.

Other Jupyter clients, and threads that cells left running, make output between the operations of a
kernel. Not taken, it would fill the memory of this process. Where the system has no epoll, as on
macOS, output waits for the next operation.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress

HAS_EPOLL = hasattr(select, "epoll") and hasattr(os, "eventfd")
_AGAIN_S = 0.1  # between two looks at a kernel that has more than is taken at once


class IdleOutput:
    """The thread that waits for output; for any thread. Close it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # for all below
        self._looks: dict[int, Callable[[], None]] = {}
        self._more: set[int] = set()
        self._poll: select.epoll | None = None
        self._thread: threading.Thread | None = None
        self._wake = -1

    def add(self, fd: int, look: Callable[[], None]) -> None:
        """Add a file descriptor, until `forget`; `look` takes the output that it announces."""
        if not HAS_EPOLL:
            return
        # Without a descriptor to wait with, output waits for the next operation.
        with self._lock, suppress(OSError):
            poll = self._poll or self._start()
            poll.register(fd, 0)
            self._looks[fd] = look

    def wait(self, fd: int, *, has_more: bool) -> None:
        """Call the `look` of a file descriptor in the thread, once, when it becomes readable.

        Args:
            fd: The file descriptor; nothing happens if it was forgotten.
            has_more: Whether there is output already, which is not announced again.
        """
        with self._lock:
            if self._poll is None or fd not in self._looks:
                return
            self._poll.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)
            if has_more:
                self._more.add(fd)
                if threading.current_thread() is not self._thread:
                    os.eventfd_write(self._wake, 1)

    def pause(self, fd: int) -> None:
        """Do not wait for a file descriptor: its kernel is asked something."""
        with self._lock:
            if self._poll is not None and fd in self._looks:
                self._poll.modify(fd, 0)

    def forget(self, fd: int) -> None:
        """Forget a file descriptor, which is closed next."""
        with self._lock:
            self._more.discard(fd)
            if self._looks.pop(fd, None) is not None and self._poll is not None:
                self._poll.unregister(fd)

    def close(self) -> None:
        """Forget all, and end the thread; another one starts with the next kernel."""
        with self._lock:
            self._looks.clear()
            self._more.clear()
            thread, poll, self._thread, self._poll = self._thread, self._poll, None, None
            wake = self._wake
            if thread is not None:
                os.eventfd_write(wake, 1)
        if thread is not None and poll is not None:
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
