"""Reasoning of a model as a status: its newest words, in one short line."""

from __future__ import annotations

import re
from collections.abc import Callable

_SHOWN_CHARS = 72
_STEP_CHARS = 40
_KEPT_CHARS = 400
_HALF_WORD = re.compile(r"\s\w+\Z")
_MARKS = re.compile(r"[*_#`]+")


class ReasoningStatus:
    """Status of a reply that begins with reasoning."""

    def __init__(self, show: Callable[[str], None]) -> None:
        """Show nothing yet.

        Args:
            show: Receives each status.
        """
        self._show = show
        self._tail = ""
        self._new_chars = 0
        self._shown = ""

    def add(self, text: str) -> None:
        """Take a piece of the reasoning; show it once a line has come, or some words."""
        self._tail = (self._tail + text)[-_KEPT_CHARS:]
        self._new_chars += len(text)
        if self._new_chars >= _STEP_CHARS or "\n" in text:
            self._new_chars = 0
            self._update(f"thinking: {self._newest()}".rstrip(": "))
        elif not self._shown:
            self._update("thinking")

    def end(self) -> None:
        """Show that the reply itself is being written, if there was reasoning."""
        if self._shown:
            self._update("writing")

    def _update(self, status: str) -> None:
        if status != self._shown:
            self._shown = status
            self._show(status)

    def _newest(self) -> str:
        """Return the newest whole words."""
        text = _HALF_WORD.sub("", _MARKS.sub("", self._tail))
        words = " ".join(text.split())
        if len(words) <= _SHOWN_CHARS:
            return words
        cut = words[-_SHOWN_CHARS:]
        return f"... {cut.partition(' ')[2] or cut}"
