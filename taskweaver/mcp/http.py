"""Responses of a server at an address, read within the bounds of `flow`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from taskweaver.mcp.flow import MOST_MESSAGE_BYTES, Flow, FlowExceeded


class _Size:
    """The bytes of a body: in all, and since the last empty line, which ends an event."""

    def __init__(self) -> None:
        self._flow = Flow()
        self._message_bytes = 0
        self._tail = b""

    def add(self, piece: bytes) -> None:
        """Count a piece.

        Raises:
            FlowExceeded: If there is too much.
        """
        events = (self._tail + piece).replace(b"\r", b"").count(b"\n\n")
        self._tail = piece[-3:]
        self._message_bytes = len(piece) if events else self._message_bytes + len(piece)
        self._flow.count(len(piece), messages=events)
        if self._message_bytes > MOST_MESSAGE_BYTES:
            raise FlowExceeded.message()


async def ask_for_plain_bytes(request: Any) -> None:
    """Have a request's response not compressed: a small one could grow without bound."""
    request.headers["Accept-Encoding"] = "identity"


async def bound_response(response: Any, broken: Callable[[str], None]) -> None:
    """Have a response, not yet read, end with an error where its body exceeds a bound.

    Raises:
        httpx2.ReadError: If it is compressed.
    """
    import httpx2

    def fail(reason: str) -> httpx2.ReadError:
        broken(reason)
        return httpx2.ReadError(reason)

    class Body(httpx2.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = _Size()
            async for piece in self._stream:
                try:
                    size.add(piece)
                except FlowExceeded as error:
                    raise fail(str(error)) from error
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise fail("its response is compressed, which was not asked for")
    response.stream = Body(response.stream)
