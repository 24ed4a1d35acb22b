r"""Keeps text encodable: halves of surrogate pairs are joined, or replaced.

Python text may hold a lone half of a pair (``"\ud83d"`` is legal in JSON), which no UTF-8 file
or terminal takes. Some servers even send the two halves of an emoji in two pieces.
"""

from __future__ import annotations

from codecs import getincrementaldecoder

_ENCODING = "utf-16-le"


class SurrogateJoiner:
    """Repairs text that comes in pieces, also when a pair is cut between two pieces."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder(_ENCODING)("replace")

    def feed(self, text: str) -> str:
        """Return the complete characters. A high surrogate at the end waits for the partner."""
        return self._decoder.decode(text.encode(_ENCODING, "surrogatepass"))

    def finish(self) -> str:
        """Return the replacement of a half that never found a partner, or nothing."""
        return self._decoder.decode(b"", final=True)


def repair(text: str) -> str:
    """Return `text` with pairs joined and lone halves replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode(_ENCODING, "surrogatepass").decode(_ENCODING, "replace")
