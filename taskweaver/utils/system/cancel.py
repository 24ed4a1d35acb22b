"""Cancelling: one flag that wakes all waiting threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CancelToken:
    """A flag raised once from any thread. `on_cancel` callbacks close connections that block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._callbacks: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """True if `cancel` was called."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Raise the flag and run the callbacks that are in force, once."""
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the flag, and return whether the flag is up."""
        return self._event.wait(timeout_s)

    @contextmanager
    def on_cancel(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call `callback` if the token is cancelled inside the block (at once if it already is)."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
        if self.cancelled:
            callback()
        try:
            yield
        finally:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)
