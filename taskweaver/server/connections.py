"""HTTP connections that do not wait for slow clients."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Literal

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from taskweaver.server.problems import MEDIA_TYPE, document

_MOST_CONNECTIONS = 2000


class ImpatientProtocol(H11Protocol):
    """A connection that is broken off when its client sends or reads too slowly.

    Attributes:
        head_s: Time in seconds for the head of a request.
        body_s: Time in seconds for a body, in addition to that at the least rate.
        least_rate: Rate in bytes per second at which a body must arrive at least.
        write_s: Time in seconds for which the client may leave full buffers unread.
    """

    head_s, body_s, least_rate, write_s = 10.0, 20.0, 4096.0, 30.0
    _part: Literal["head", "body", ""] = ""
    _deadline = 0.0
    _reading: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None
    cycle: RequestResponseCycle | None  # type: ignore[assignment]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        if len(self.connections) > _MOST_CONNECTIONS:
            transport.abort()
            return
        self._wait_for("head")

    def connection_lost(self, exc: Exception | None) -> None:
        """End the timers."""
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; decide how long the next may take."""
        super().data_received(data)
        part: Literal["head", "body", ""] = "head"
        if self.cycle is not None and not self.cycle.response_complete:
            part = "body" if self.cycle.more_body else ""
        if part != self._part:
            self._wait_for(part)
        elif part == "body":
            # Each byte buys time, and no more than the rate allows.
            bought = self._deadline + len(data) / self.least_rate
            self._deadline = min(bought, self.loop.time() + self.body_s)

    def on_response_complete(self) -> None:
        """Leave the time between requests to the server's limit for idle connections."""
        self._part = ""
        super().on_response_complete()

    def _wait_for(self, part: Literal["head", "body", ""]) -> None:
        self._part = part
        self._deadline = self.loop.time() + (self.head_s if part == "head" else self.body_s)
        if part and self._reading is None:
            self._reading = self.loop.call_at(self._deadline, self._check)

    def _check(self) -> None:
        """Break the connection off at the deadline, unless the client waits for the server."""
        self._reading = None
        if not self._part or self.transport.is_closing():
            return
        is_waiting = self.cycle is not None and self.cycle.waiting_for_100_continue
        if self._part == "body" and (self.flow.read_paused or is_waiting):
            self._deadline = self.loop.time() + self.body_s
        if self.loop.time() >= self._deadline:
            self.transport.abort()
        else:
            self._reading = self.loop.call_at(self._deadline, self._check)

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        self._writing = self.loop.call_later(self.write_s, self.transport.abort)

    def resume_writing(self) -> None:
        """End the wait: the client has read."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no HTTP with a problem document."""
        status = HTTPStatus.BAD_REQUEST
        body = document(status, "no-http", f"This is no HTTP request: {msg}", "")
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        head = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
        for event in (head, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
