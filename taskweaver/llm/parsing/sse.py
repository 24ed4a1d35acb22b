"""Reader of event streams (the ``text/event-stream`` format of the HTML standard) from bytes.

Model endpoints use only the data of each event and the name ``error``, and so does this reader.
Lines may end in LF or CRLF, and blocks may end anywhere, also inside a character. A body that is
one JSON object, as of a server that knows no streams, is one event.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

MAX_EVENT_BYTES = 8 << 20
"""Longest event that is read; a body without line breaks is not collected for ever."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BEGINNINGS = (b":", b"data:", b"event:", b"id:", b"retry:")


class NotAnEventStream(ValueError):
    """The bytes are no event stream; `beginning` holds the first of them."""

    def __init__(self, beginning: str) -> None:
        super().__init__(beginning)
        self.beginning = beginning


class EventReader:
    """Turns the blocks of a response body into the data of its events.

    Attributes:
        is_object: Whether the body is one JSON object.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._is_begun = False
        self.is_object = False
        self._is_error = False

    def feed(self, block: bytes) -> Iterator[bytes]:
        """Yield the data of every event that `block` completes.

        Raises:
            NotAnEventStream: If the body does not start like one, or an event has no end.
        """
        if self._is_begun and (self.is_object or b"\n" not in block):
            self._rest += block  # a long line is not copied for each block
        else:
            text = bytes(self._rest) + block
            text = text if self._is_begun else self._begin(text)
            lines = [text] if self.is_object else text.split(b"\n")
            self._rest = bytearray(lines.pop())
            for line in lines:
                yield from self._take(line.removesuffix(b"\r"))
        if len(self._rest) > MAX_EVENT_BYTES:
            raise NotAnEventStream(f"an event of more than {MAX_EVENT_BYTES:,} bytes")

    def finish(self) -> Iterator[bytes]:
        """Yield the data that the end of the body completes.

        Raises:
            NotAnEventStream: If the body was no event stream, or empty.
        """
        last, self._rest = bytes(self._rest), bytearray()
        if self.is_object:
            yield last
            return
        yield from self._take(last.removesuffix(b"\r"))
        yield from self._take(b"")
        if not self._is_begun:
            raise NotAnEventStream(last.decode("utf-8", "replace"))

    def _begin(self, text: bytes) -> bytes:
        """Check that this is an event stream, once enough bytes have arrived."""
        if _BYTE_ORDER_MARK.startswith(text):  # it may have been cut
            return text
        text = text.removeprefix(_BYTE_ORDER_MARK).lstrip()
        self.is_object = text.startswith(b"{")
        self._is_begun = self.is_object or text.startswith(_BEGINNINGS)
        if not self._is_begun and not any(start.startswith(text) for start in _BEGINNINGS):
            raise NotAnEventStream(text.decode("utf-8", "replace"))
        return text

    def _take(self, line: bytes) -> Iterator[bytes]:
        if not line:
            if self._data:
                data = b"\n".join(self._data)
                yield _error(data) if self._is_error else data
                self._data.clear()
            self._is_error = False
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._is_error = value.strip() == b"error"


def _error(data: bytes) -> bytes:
    """Return the data of an event named ``error`` as an object with the error in it."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = data.decode("utf-8", "replace")
    is_named = isinstance(value, dict) and value.get("error")
    return data if is_named else json.dumps({"error": value}).encode()
