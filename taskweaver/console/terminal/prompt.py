"""The line one types at: history, completion, pasted lines."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.patch_stdout import patch_stdout

from taskweaver.console.terminal.surface import is_plain, is_terminal

PROMPT = "> "
HISTORY_FILE = ".taskweaver-history"
_LAST_WORD = re.compile(r"\S*\Z")


def can_prompt() -> bool:
    """Return whether a prompt can be drawn where the user types."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


class PromptReader:
    """Reads lines at a terminal.

    Ctrl-C clears a line that holds something; Alt-Enter starts a new line.
    """

    def __init__(
        self, words: Callable[[], Iterable[str]], on_shown: Callable[[], object] = lambda: None
    ) -> None:
        """Prepare the prompt; `on_shown` is called when it is on the screen for the first time."""
        self._on_shown: Callable[[], object] | None = on_shown
        self._session: PromptSession[str] = PromptSession(
            history=_history(Path.home() / HISTORY_FILE),
            completer=LineCompleter(words),
            complete_while_typing=True,
            key_bindings=_bindings(),
            color_depth=ColorDepth.DEPTH_1_BIT if is_plain(sys.stdout) else None,
            prompt_continuation="  ",
        )
        self._session.app.after_render += self._shown

    def read(self) -> str:
        """Return the next line.

        Raises:
            EOFError: If Ctrl-D was pressed.
            KeyboardInterrupt: If Ctrl-C was pressed on an empty line.
            TaskWeaverError: If `give_up` was called with one.
        """
        with patch_stdout(raw=True):
            return self._session.prompt(PROMPT)

    def give_up(self, error: BaseException) -> None:
        """Make a `read` that waits raise `error`; from any thread."""
        app = self._session.app
        if app.is_running and app.loop is not None:
            app.loop.call_soon_threadsafe(lambda: app.exit(exception=error))

    def _shown(self, _: object) -> None:
        begin, self._on_shown = self._on_shown, None
        if begin is not None:
            begin()


class PlainReader:
    """Reads lines where no prompt can be drawn."""

    def read(self) -> str:
        """Return the next line.

        Raises:
            EOFError: If there is none.
        """
        return input(PROMPT)


class LineCompleter(Completer):
    """Completes commands at the start of a line, and file names anywhere."""

    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        self._words = words
        self._paths = PathCompleter(expanduser=True)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield completions of the word before the cursor."""
        line = document.text_before_cursor
        found = _LAST_WORD.search(line)
        word = found.group() if found else ""
        is_command = line.startswith("/") and word == line
        if len(word) >= (1 if is_command else 2):
            for name in self._words():
                if name.startswith("/") == is_command and name.lower().startswith(word.lower()):
                    yield Completion(name, -len(word))
        asks_for_path = line.startswith("/") or complete_event.completion_requested or "/" in word
        if asks_for_path and not is_command:
            yield from self._paths.get_completions(Document(word), complete_event)


def _history(path: Path) -> History:
    is_usable = os.access(path if path.exists() else path.parent, os.W_OK)
    return FileHistory(str(path)) if is_usable else InMemoryHistory()


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("c-c")
    def clear_or_interrupt(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    @bindings.add("escape", "enter")
    def start_new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return bindings
