"""HTTP messages through a proxy: parsed and framed anew by h11, never passed on raw.

Both ends see the same message ends, so no second request can hide in the body of the first.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from dataclasses import dataclass

import h11

from taskweaver.ces.sandbox.hosts import Authority
from taskweaver.utils.system.network import Stream

END = b"\r\n\r\n"
"""End of a head."""
_CHUNK_BYTES = 64 << 10
_REPLY_HEAD_BYTES = 64 << 10
_OF_ONE_HOP = frozenset(
    b"connection keep-alive proxy-connection proxy-authorization te trailer upgrade".split()
)
_FRAMING = frozenset((b"content-length", b"transfer-encoding", b"host"))
_URL = re.compile(
    rb"http://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?(?:#.*)?", re.I
)
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)")


class BadRequest(ValueError):
    """A message that a proxy must not pass on."""


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """A client's request to a proxy.

    `forwarded` is the request to send there; None for a tunnel.
    """

    host: str
    port: int
    forwarded: h11.Request | None


class ClientSide:
    """A client's connection to a proxy: one request, one reply."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._connection = h11.Connection(h11.SERVER)

    def read_head(self, head: bytes) -> ProxyRequest:
        """Read the head of the request.

        Raises:
            BadRequest: If it is not the head of a request that a proxy can pass on.
        """
        if _FORBIDDEN.search(head):  # h11 takes a bare line feed for the end of a line
            raise BadRequest("there are control characters in the head")
        self._connection.receive_data(head)
        try:
            request = self._connection.next_event()
        except h11.ProtocolError as error:
            raise BadRequest(str(error)) from error
        if not isinstance(request, h11.Request) or not request.http_version.startswith(b"1."):
            raise BadRequest("this is not an HTTP request")
        return _for_proxy(request)

    async def send_body_to(self, server: ServerSide, touch: Callable[[], None]) -> None:
        """Pass the whole body of the request on.

        Raises:
            BadRequest: If the body breaks off or is not framed as the head announces.
            OSError: If either end is gone.
        """
        try:
            async for event in _events(self._stream, self._connection, touch):
                await server.send(event)
                touch()
        except h11.RemoteProtocolError as error:
            raise BadRequest(str(error)) from error

    async def send(self, event: h11.Event) -> None:
        """Send a part of the reply.

        Raises:
            OSError: If the client is gone.
        """
        await self._stream.send(self._connection.send(event) or b"")


class ServerSide:
    """A proxy's connection to a server: one request, one reply."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_REPLY_HEAD_BYTES)

    async def send(self, event: h11.Event) -> None:
        """Send a part of the request.

        Raises:
            OSError: If the server is gone.
        """
        await self._stream.send(self._connection.send(event) or b"")

    async def reply(self, touch: Callable[[], None]) -> AsyncIterator[h11.Event]:
        """Yield the parts of the reply in the form for the client.

        Raises:
            h11.RemoteProtocolError: If it is not a reply, or breaks off.
            OSError: If the server is gone.
        """
        async for event in _events(self._stream, self._connection, touch):
            if isinstance(event, h11.Response):
                yield h11.Response(
                    status_code=event.status_code,
                    headers=_closing(_end_to_end(event.headers.raw_items())),
                    reason=event.reason,
                )
            else:
                yield event


async def _events(
    stream: Stream, connection: h11.Connection, touch: Callable[[], None]
) -> AsyncIterator[h11.Event]:
    """Yield the parts of the message that arrives on a connection, without trailers."""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.reader.read(_CHUNK_BYTES))
            touch()
        elif isinstance(event, h11.EndOfMessage):
            yield h11.EndOfMessage()
            return
        elif isinstance(event, h11.Event):
            yield event


def _for_proxy(request: h11.Request) -> ProxyRequest:
    fields = _end_to_end(request.headers.raw_items(), without=(b"host",))
    if {name.lower() for name, _ in fields} >= {b"content-length", b"transfer-encoding"}:
        raise BadRequest("the length of the body is given twice")
    try:
        if request.method == b"CONNECT":
            asked = Authority.parse(request.target.decode())
            if asked.port is None:
                raise BadRequest("a port is missing")
            return ProxyRequest(asked.host, asked.port, None)
        url = _URL.fullmatch(request.target)
        if url is None:
            raise BadRequest("a proxy needs the whole http:// address")
        asked = Authority.parse(url["authority"].decode())
    except ValueError as error:
        raise BadRequest(str(error)) from error
    forwarded = h11.Request(
        method=request.method,
        target=(url["path"] or b"/") + (url["query"] or b""),
        # The host is that of the address, whatever the client's header says.
        headers=_closing([(b"Host", url["authority"]), *fields]),
    )
    return ProxyRequest(asked.host, asked.port or 80, forwarded)


def _end_to_end(
    fields: Iterable[tuple[bytes, bytes]], without: Collection[bytes] = ()
) -> list[tuple[bytes, bytes]]:
    """Return the end-to-end headers, without headers for the next hop."""
    named = {
        name.strip().lower()
        for field, value in fields
        if field.lower() == b"connection"
        for name in value.split(b",")
    }
    # The length of the body depends on the framing headers, whatever `Connection` names.
    dropped = (named - _FRAMING) | _OF_ONE_HOP | set(without)
    return [field for field in fields if field[0].lower() not in dropped]


def _closing(fields: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return headers after whose message the connection ends."""
    return [*fields, (b"Connection", b"close")]
