"""Asks the person at the terminal whether something may run."""

from __future__ import annotations

import select
import sys

from taskweaver.console.terminal.blocks import CodeBlock, NoteBlock
from taskweaver.console.terminal.keyboard import discard_typed, is_keyboard
from taskweaver.console.terminal.surface import Surface
from taskweaver.console.terminal.text import safe
from taskweaver.module.confirmation import Confirmation, ConfirmationRequest

_ANSWERS = {
    "y": Confirmation.yes, "yes": Confirmation.yes,
    "a": Confirmation.always, "always": Confirmation.always,
}  # fmt: skip


class TerminalConfirmation:
    """A handler that asks on the surface; anything but y or a is a no."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface

    def request_confirmation(
        self, request: ConfirmationRequest, timeout_s: float
    ) -> Confirmation | None:
        """Show the changes, and ask."""
        with self._surface.paused():
            # Code was on the screen before, the call of a tool was not.
            is_tool = any(kind.startswith("tool ") for kind in request.kinds)
            shown = request.content if is_tool else request.diff()
            if shown:
                self._surface.show(CodeBlock(safe(shown)))
            kinds = ", ".join(sorted(request.kinds))
            self._surface.show(
                NoteBlock(f"Run this ({safe(kinds)})? y: yes, a: always in this session, else no")
            )
            line = read_line(timeout_s)
        if line is None:
            self._surface.show(NoteBlock("no answer: it does not run", is_warning=True))
            return None
        answer = _ANSWERS.get(line.strip().lower(), Confirmation.no)
        if answer is Confirmation.no:
            self._surface.show(NoteBlock("it does not run"))
        return answer


def read_line(timeout_s: float) -> str | None:
    """Return a line typed from now on; None when none comes in time, or without a keyboard."""
    if sys.stdin is None:
        return None
    if not is_keyboard():
        return sys.stdin.readline() or None
    discard_typed()
    if not select.select([sys.stdin], [], [], timeout_s)[0]:
        return None
    return sys.stdin.readline() or None
