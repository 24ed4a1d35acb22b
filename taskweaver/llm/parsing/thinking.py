"""Reasoning that a model writes into its text, between ``<think>`` and ``</think>``."""

from __future__ import annotations

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkingSplitter:
    """Separates reasoning at the beginning of a reply from the reply, piece by piece."""

    def __init__(self) -> None:
        self._held = ""
        self._is_begun = False
        self._is_inside = False

    def feed(self, text: str) -> tuple[str, str]:
        """Take new text; return the new text of the reply, and of the reasoning."""
        if not self._is_begun:
            self._held += text
            start = self._held.lstrip()
            if _OPEN.startswith(start) or not start:
                return "", ""
            self._is_begun = True
            self._is_inside = start.startswith(_OPEN)
            text = start.removeprefix(_OPEN) if self._is_inside else self._held
            self._held = ""
        return self._inside(text) if self._is_inside else (text, "")

    def finish(self) -> tuple[str, str]:
        """Return what was held back, at the end of the reply."""
        held, self._held = self._held, ""
        return ("", held) if self._is_inside else (held, "")

    def _inside(self, text: str) -> tuple[str, str]:
        self._held += text
        thought, mark, rest = self._held.partition(_CLOSE)
        if mark:
            self._is_inside, self._held = False, ""
            return rest, thought
        kept = max((n for n in range(len(_CLOSE)) if self._held.endswith(_CLOSE[:n])), default=0)
        at = len(self._held) - kept
        shown, self._held = self._held[:at], self._held[at:]
        return "", shown


def without_thinking(text: str) -> str:
    """Return a whole reply without reasoning whose opening mark is missing."""
    return text.rpartition(_CLOSE)[2].lstrip() if _CLOSE in text else text
