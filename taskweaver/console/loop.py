"""Read, answer, read again, while the project opens behind the prompt.

Nothing heavy is imported here: the prompt is on the screen before the application is.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from taskweaver.console.terminal.blocks import NoteBlock
from taskweaver.console.terminal.surface import Surface

LEAVING = "Ctrl-C again leaves; so do /exit and Ctrl-D."
INTERRUPTED = "Interrupted. The session goes on: variables and earlier answers are still there."


class Listener(Protocol):
    """Receiver of typed lines."""

    def handle(self, line: str) -> bool:
        """Answer a line; return whether the conversation goes on."""
        ...

    def words(self) -> list[str]:
        """Return words worth completing: commands and files."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Reader(Protocol):
    """Source of typed lines."""

    def read(self) -> str:
        """Return the next line.

        Raises:
            EOFError: If there is none.
            KeyboardInterrupt: If Ctrl-C was pressed on an empty line.
        """
        ...


class Opening:
    """A listener being made in a thread of its own, which lives as long as the listener."""

    def __init__(self, make: Callable[[], Listener]) -> None:
        self._make = make
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="opening")
        self._future: Future[Listener] | None = None

    def start(self) -> Future[Listener]:
        """Begin, unless that was done."""
        if self._future is None:
            self._future = self._pool.submit(self._make)
        return self._future

    def peek(self) -> Listener | None:
        """Return the listener if it is there; never waits.

        Raises:
            TaskWeaverError: If it could not be made.
        """
        return self._future.result() if self._future and self._future.done() else None

    def result(self) -> Listener:
        """Wait for the listener and return it.

        Raises:
            TaskWeaverError: If it could not be made.
        """
        return self.start().result()

    def words(self) -> list[str]:
        """Return words worth completing; none while the listener is not there."""
        is_there = self._future and self._future.done() and not self._future.exception()
        return self.result().words() if is_there else []

    def close(self) -> None:
        """Close the listener once it is there."""
        if self._future is not None and self._future.exception() is None:
            self._future.result().close()
        self._pool.shutdown()


def talk(reader: Reader, opening: Opening, surface: Surface) -> None:
    """Answer lines until the user leaves.

    Raises:
        TaskWeaverError: If the project cannot be opened.
    """
    is_warned = False
    while True:
        opening.peek()
        try:
            line = reader.read()
        except EOFError:
            return
        except KeyboardInterrupt:
            if is_warned:
                return
            surface.show(NoteBlock(LEAVING))
            is_warned = True
            continue
        is_warned = False
        if line.strip() and not _answer(line, opening, surface):
            return


def _answer(line: str, opening: Opening, surface: Surface) -> bool:
    try:
        listener = opening.peek()
        if listener is None:
            with surface.working(lambda: "opening the project"):
                listener = opening.result()
        return listener.handle(line)
    except KeyboardInterrupt:
        surface.show(NoteBlock(INTERRUPTED, is_warning=True))
        return True
