"""Clients that send or read slowly lose their connection."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import pytest
from pydantic import BaseModel
from served import Served, served
from starlette.responses import Response, StreamingResponse
from uvicorn import Config
from uvicorn.server import ServerState

from taskweaver.server.connections import ImpatientProtocol
from taskweaver.server.operations import ApiOperation, Call


class Size(BaseModel):
    """A size."""

    size: int


class BulkDoor:
    """A door that takes and gives many bytes."""

    statuses = MappingProxyType({})

    def __init__(self) -> None:
        self.operations = [
            ApiOperation(
                "PUT", "/up", self.up, "Up", takes_bytes=True, answer=Size, is_public=True
            ),
            ApiOperation("GET", "/down", self.down, "Down", is_public=True),
        ]

    async def up(self, call: Call) -> BaseModel:
        """Return the size of the body."""
        return Size(size=sum([len(chunk) async for chunk in call.chunks(1 << 30)]))

    async def down(self, _call: Call) -> Response:
        """Send more than any buffer holds."""

        async def chunks():
            for _ in range(1000):
                yield b"x" * 100_000

        return StreamingResponse(chunks())

    async def finish(self, grace_s: float) -> None:
        """Nothing runs."""

    async def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(ImpatientProtocol, "head_s", 0.3)
    monkeypatch.setattr(ImpatientProtocol, "body_s", 0.3)
    monkeypatch.setattr(ImpatientProtocol, "write_s", 0.3)
    with served([BulkDoor()], tmp_path) as running:
        yield running


HEAD = b"PUT /up HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET /dow", HEAD + b"Content-Length: 100\r\n\r\nabc"])
def test_a_client_that_stops_sending_is_dropped(server: Served, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), 60) as link:
        link.sendall(sent)
        assert _is_ended(link)


def test_a_client_that_sends_byte_by_byte_is_dropped(server: Served) -> None:
    with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), 60) as link:
        link.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
        link.settimeout(0.02)
        for _ in range(3000):
            try:
                link.sendall(b"x")
                if link.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    raise AssertionError("it was served")


def test_a_client_that_does_not_read_is_dropped(server: Served) -> None:
    with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), 60) as link:
        link.sendall(b"GET /down HTTP/1.1\r\nHost: localhost\r\n\r\n")
        link.recv(1)
        pause = threading.Event()
        while server.server.server_state.connections:
            pause.wait(0.05)
        size = 0
        with suppress(ConnectionResetError):
            while chunk := link.recv(1 << 20):
                size += len(chunk)
        assert size < 100_000_000


def test_a_client_in_time_is_served(tmp_path: Path) -> None:
    headers = {"Content-Type": "application/octet-stream"}
    content = (b"x" * 100_000 for _ in range(50))
    with served([BulkDoor()], tmp_path) as server:
        client = server.client("")
        taken = client.put("/up", content=content, headers=headers)
        assert taken.json()["size"] == 5_000_000
        assert len(client.get("/down").content) == 100_000_000


class SetClock(asyncio.SelectorEventLoop):
    """An event loop whose clock a test sets.

    Attributes:
        now: Its time in seconds.
    """

    now = 0.0

    def time(self) -> float:
        """Return its time."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Set the clock forward, and do what is due."""
        self.now += seconds
        for _ in range(5):  # a timer, the task that it wakes, and what that wakes
            self.run_until_complete(asyncio.sleep(0))


class Link(asyncio.Transport):
    """A connection without a network.

    Attributes:
        is_ended: Whether it was broken off.
    """

    is_ended = False

    def abort(self) -> None:
        """Break it off."""
        self.is_ended = True

    def is_closing(self) -> bool:
        """Return whether it was broken off."""
        return self.is_ended

    def pause_reading(self) -> None:
        """Nothing is read."""

    def resume_reading(self) -> None:
        """Nothing is read."""


@pytest.fixture
def clock() -> Iterator[SetClock]:
    with asyncio.Runner(loop_factory=SetClock) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SetClock)
        yield loop


@contextmanager
def asked(clock: SetClock, head: bytes) -> Iterator[tuple[ImpatientProtocol, Link]]:
    """Send the head of a request to an application that reads all, and does not answer."""

    async def reading(_: object, receive: Callable[[], Awaitable[dict[str, str]]], __: object):
        while (await receive())["type"] != "http.disconnect":
            pass

    config = Config(reading, lifespan="off", log_config=None)  # type: ignore[arg-type]
    protocol, link = ImpatientProtocol(config, ServerState(), {}, clock), Link()
    protocol.connection_made(link)
    protocol.data_received(head)
    clock.advance(0)
    try:
        yield protocol, link
    finally:
        protocol.connection_lost(ConnectionResetError())
        clock.advance(0)


def test_each_byte_buys_time_and_too_few_do_not_buy_enough(clock: SetClock) -> None:
    with asked(clock, HEAD + b"Content-Length: 10000000\r\n\r\n") as (protocol, link):
        least, allowed_s = int(protocol.least_rate), int(protocol.body_s)
        for _ in range(10 * allowed_s):
            protocol.data_received(b"x" * least)
            clock.advance(1.0)
        assert not link.is_ended
        for _ in range(allowed_s + allowed_s // 2):
            protocol.data_received(b"x" * (least // 2))
            clock.advance(1.0)
        assert not link.is_ended, "half of the rate is in time for twice as long as nothing"
        for _ in range(allowed_s):
            protocol.data_received(b"x" * (least // 2))
            clock.advance(1.0)
        assert link.is_ended


def test_a_client_that_reads_on_in_time_is_not_dropped(clock: SetClock) -> None:
    with asked(clock, b"GET /down HTTP/1.1\r\nHost: localhost\r\n\r\n") as (protocol, link):
        for _ in range(3):
            protocol.pause_writing()
            clock.advance(protocol.write_s - 1)
            protocol.resume_writing()
        clock.advance(10 * protocol.write_s)
        assert not link.is_ended
        protocol.pause_writing()
        clock.advance(protocol.write_s + 1)
        assert link.is_ended


def _is_ended(link: socket.socket) -> bool:
    try:
        return link.recv(1) == b""
    except ConnectionResetError:
        return True
