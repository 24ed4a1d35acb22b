"""Reader of newline-delimited JSON from bytes: the text of each line, whole."""

from __future__ import annotations

from collections.abc import Iterator

from taskweaver.llm.parsing.sse import MAX_EVENT_BYTES, NotAnEventStream


class LineReader:
    """Turns the blocks of a response body into its lines, each one JSON object."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, block: bytes) -> Iterator[bytes]:
        """Yield every line that `block` completes.

        Raises:
            NotAnEventStream: If a line is no object, or has no end.
        """
        *lines, self._rest = (self._rest + block).split(b"\n")
        for line in lines:
            yield from _checked(line)
        if len(self._rest) > MAX_EVENT_BYTES:
            raise NotAnEventStream(f"a line of more than {MAX_EVENT_BYTES:,} bytes")

    def finish(self) -> Iterator[bytes]:
        """Yield the line that the end of the body completes.

        Raises:
            NotAnEventStream: If it is no object.
        """
        last, self._rest = self._rest, b""
        yield from _checked(last)


def _checked(line: bytes) -> Iterator[bytes]:
    text = line.strip()
    if text and not text.startswith(b"{"):
        raise NotAnEventStream(text.decode("utf-8", "replace"))
    if text:
        yield text
