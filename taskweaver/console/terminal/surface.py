"""Displays of blocks: a terminal with one live region, or plain lines.

The live region holds the block that is being written and one status line. Complete blocks are
printed above it and never touched again, so the scroll-back reads like a log.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Protocol, TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from taskweaver.console.terminal.blocks import Block, format_seconds, steady
from taskweaver.console.terminal.draw import Glyphs, draw, glyphs_for
from taskweaver.console.terminal.keyboard import silent_keyboard
from taskweaver.console.terminal.plain import spell
from taskweaver.utils.markup.characters import without_steering

FRAMES_PER_SECOND = 12
PREVIEW_CHARS = 6_000


class Surface(Protocol):
    """Display of a conversation."""

    def show(self, block: Block) -> None:
        """Show a block for good."""
        ...

    def preview(self, block: Block | None) -> None:
        """Show a block that is still being written, instead of the one before."""
        ...

    def working(self, status: Callable[[], str]) -> AbstractContextManager[None]:
        """Say that work is going on inside the block; `status` is asked for words to show."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Let a person type inside the block, which is inside `working`."""
        ...

    def ask_status(self, text: str) -> None:
        """Set the current status."""
        ...


class PlainSurface:
    """Blocks as lines: nothing moves, nothing is coloured, nothing is shown twice."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to a stream; None is whatever standard output is at the time."""
        self._stream = stream

    def show(self, block: Block) -> None:
        """Write a block."""
        stream = self._stream or sys.stdout
        encoding = stream.encoding or "utf-8"
        text = spell(steady(block)) + "\n"
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()

    def preview(self, block: Block | None) -> None:
        """Leave out the incomplete block."""

    @contextmanager
    def working(self, status: Callable[[], str]) -> Iterator[None]:
        """Show nothing around the block: a printed line cannot be taken back."""
        del status
        yield

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do nothing around the block."""
        yield

    def ask_status(self, text: str) -> None:
        """Leave out the status."""


@dataclass(frozen=True, slots=True)
class _Tail:
    """The last lines of something, as many as fit."""

    body: RenderableType
    lines: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        drawn = console.render_lines(self.body, options.update(height=None), pad=False)
        for line in drawn[-self.lines :]:
            yield from line
            yield Segment.line()


class LiveSurface:
    """Blocks in colour, with one live region below them while work is going on."""

    def __init__(self, console: Console, glyphs: Glyphs) -> None:
        self.console = console
        self.glyphs = glyphs
        self._lock = threading.Lock()
        self._preview: Block | None = None
        self._status = ""
        self._more: Callable[[], str] = str
        self._since = 0.0
        self._spinner = Spinner(glyphs.spinner, style="cyan")
        self._live = ExitStack()

    def show(self, block: Block) -> None:
        """Print a block above the live region."""
        self.console.print(draw(steady(block), self.glyphs), highlight=False)

    def preview(self, block: Block | None) -> None:
        """Draw a block in the live region at the next frame."""
        with self._lock:
            self._preview = None if block is None else steady(block)

    def ask_status(self, text: str) -> None:
        """Show the status beside the spinner."""
        with self._lock:
            self._status = without_steering(text)

    @contextmanager
    def working(self, status: Callable[[], str]) -> Iterator[None]:
        """Keep the live region on the screen inside the block."""
        self._more, self._since, self._status = status, monotonic(), ""
        try:
            with ExitStack() as self._live:
                self._live.enter_context(silent_keyboard())
                self._live.enter_context(self._new_live())
                yield
        finally:
            self.preview(None)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the live region off the screen, and give the keyboard back."""
        self._live.close()
        try:
            yield
        finally:
            self._live.enter_context(silent_keyboard())
            self._live.enter_context(self._new_live())

    def _new_live(self) -> Live:
        return Live(
            console=self.console,
            get_renderable=self._frame,
            refresh_per_second=FRAMES_PER_SECOND,
            transient=True,
        )

    def _frame(self) -> RenderableType:
        with self._lock:
            block, status = self._preview, self._status
        words = (status, format_seconds(monotonic() - self._since), self._more())
        line = Text(f" {self.glyphs.dot} ", style="dim")
        self._spinner.update(text=line.join(Text(word, style="dim") for word in words if word))
        if block is None:
            return self._spinner
        height = max(self.console.height - 4, 3)
        return Group(_Tail(draw(block, self.glyphs), height), self._spinner)


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal whose cursor can be moved."""
    unset = "" if os.name == "posix" else "any"
    return stream.isatty() and os.environ.get("TERM", unset) not in {"", "dumb", "unknown"}


def is_plain(stream: TextIO) -> bool:
    """Return whether colours and moving parts are unwelcome on a stream."""
    return bool(os.environ.get("NO_COLOR")) or not is_terminal(stream)


def open_surface(stream: TextIO | None = None) -> PlainSurface | LiveSurface:
    """Return the surface that suits a stream, standard output by default."""
    if is_plain(stream or sys.stdout):
        return PlainSurface(stream)
    console = Console(file=stream, force_terminal=True, highlight=False)
    return LiveSurface(console, glyphs_for(console.encoding))
