r"""Keeps text encodable: halves of surrogate pairs are joined, or replaced.

Python text may hold a lone half of a pair (``"\ud83d"`` is legal in JSON), which no UTF-8 file
or terminal takes. Some servers even send the two halves of an emoji in two pieces.
"""

from __future__ import annotations

import re

_ANY = re.compile("[\ud800-\udfff]")
_IS_HIGH = re.compile("[\ud800-\udbff]\\Z")
REPLACEMENT = "\ufffd"


def repair(text: str) -> str:
    """Return `text` with pairs joined and lone halves replaced by U+FFFD."""
    if text.isascii() or not _ANY.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class SurrogateJoiner:
    """Repairs text that comes in pieces, also when a pair is cut between two pieces."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the complete characters. A high surrogate at the end waits for the partner."""
        text, self._held = self._held + text, ""
        if not text.isascii() and _IS_HIGH.search(text):
            text, self._held = text[:-1], text[-1]
        return repair(text)

    def finish(self) -> str:
        """Return the replacement of a half that never found a partner, or nothing."""
        held, self._held = self._held, ""
        return REPLACEMENT if held else ""
