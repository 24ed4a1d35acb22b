"""Reasoning that models write into their text, split from it while it arrives."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPEN = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_OPENINGS = ("<think>", "<thinking>")
_CLOSINGS = ("</think>", "</thinking>")
_LOOKED_BACK = 4096
_QUOTES = ("`", '"', "'", "\\")


@dataclass(frozen=True, slots=True)
class Split:
    """New text of a reply.

    Attributes:
        text: Text of the reply itself.
        reasoning: Reasoning.
        begins_again: Whether all text before was reasoning too: its end came without a beginning.
    """

    text: str = ""
    reasoning: str = ""
    begins_again: bool = False


class ThinkingSplitter:
    """Splits ``<think>``, at the beginning of a text, from the reply.

    A ``</think>`` without a beginning ends reasoning as well: the template of some models writes
    the beginning into the prompt.

    Attributes:
        lacks_opening: Whether reasoning ended that had no beginning.
    """

    def __init__(self, *, is_thinking: bool = False) -> None:
        """Begin a reply.

        Args:
            is_thinking: Whether it begins with reasoning, as earlier replies of the model did.
        """
        self.lacks_opening = False
        self._is_assumed = is_thinking
        self._is_thinking = is_thinking
        self._is_beginning = not is_thinking
        self._held = ""
        self._seen: list[str] = []
        self._mentions_tag = False
        self._strips = False

    def feed(self, text: str) -> Split:
        """Take the next piece; return what is certain of it."""
        return self._read(self._held + text, is_end=False)

    def finish(self) -> Split:
        """Return what was held back.

        Text that was taken for reasoning by assumption alone, and has no end, is the reply.
        """
        last = self._read(self._held, is_end=True)
        seen = "".join(self._seen)
        if self._is_assumed and not _OPEN.match(seen):
            return Split(seen)
        return last

    def _read(self, text: str, *, is_end: bool) -> Split:
        self._held = ""
        shown, thought, again = "", "", False
        while text:
            if self._is_beginning:
                match = _OPEN.match(text)
                if match is None and not is_end and _may_open(text):
                    self._held = text
                    break
                self._is_beginning = False
                if match is not None:
                    self._is_thinking, self._mentions_tag = True, True
                    text = text[match.end() :]
                elif self._strips:
                    text = text.lstrip()
                continue
            end = _CLOSE.search(text)
            if self._is_thinking:
                if end is None:
                    thought += self._keep(text, is_end=is_end)
                    break
                thought += text[: end.start()]
                self._end_of_thought()
                text = text[end.end() :]
                continue
            if end is None or self._mentions_tag or self._is_quoted(shown + text[: end.start()]):
                shown += self._keep(text, is_end=is_end or self._mentions_tag)
                break
            again = self.lacks_opening = True
            thought, shown = thought + shown + text[: end.start()], ""
            self._end_of_thought()
            text = text[end.end() :]
        self._remember(thought if self._is_assumed else shown)
        return Split(shown, thought, again)

    def _remember(self, text: str) -> None:
        if not text:
            return
        self._seen.append(text)
        if not self._is_assumed:
            self._seen[:] = ["".join(self._seen)[-_LOOKED_BACK:]]

    def _is_quoted(self, text: str) -> bool:
        before = ("".join(self._seen) + text)[-_LOOKED_BACK:]
        return before.endswith(_QUOTES) or any(tag in before.lower() for tag in _OPENINGS)

    def _end_of_thought(self) -> None:
        self.lacks_opening = self.lacks_opening or self._is_assumed
        self._is_thinking = self._is_assumed = False
        self._is_beginning = self._mentions_tag = self._strips = True

    def _keep(self, text: str, *, is_end: bool) -> str:
        """Return the text that cannot be the beginning of a closing tag; hold the rest."""
        at = text.rfind("<")
        rest = text[at:].lower() if at >= 0 else ""
        if is_end or not rest or not any(tag.startswith(rest) for tag in _CLOSINGS):
            return text
        self._held = text[at:]
        return text[:at]


def _may_open(text: str) -> bool:
    rest = text.lstrip().lower()
    return any(tag.startswith(rest) for tag in _OPENINGS)
