"""A thread that watches processes which cells left behind; it ends with them."""

from __future__ import annotations

import threading
from collections.abc import Callable

_PAUSE_S = 0.5


class LeftoverWatch:
    """Watches processes between cells, in a thread that runs only while there are any."""

    def __init__(self, look: Callable[[], bool]) -> None:
        """Prepare it; `look` measures once, and returns whether something is left to watch."""
        self._look = look
        self._thread: threading.Thread | None = None
        self._is_over = threading.Event()

    def start(self) -> None:
        """Watch until nothing is left, or `stop`."""
        self.stop()
        self._is_over = threading.Event()
        run = self._run
        self._thread = threading.Thread(
            target=run, args=(self._is_over,), name="leftovers", daemon=True
        )
        self._thread.start()

    def _run(self, is_over: threading.Event) -> None:
        while not is_over.wait(_PAUSE_S) and self._look():
            pass

    def stop(self) -> None:
        """End the watch, and wait for its thread."""
        self._is_over.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
