"""An endpoint on loopback that answers as a test tells it to, faults included."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from patience import PATIENCE_S

SOON_S = 30.0
"""What takes less did not wait for the endpoint, on a busy machine too."""


def event(text: str | None = None, finish: str | None = None, **more: Any) -> bytes:
    """Return the bytes of one event of a chat stream."""
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"object": "chat.completion.chunk", "choices": [choice], **more}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
DONE = b"data: [DONE]\n\n"
USAGE_EVENT = b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\n"


def good(*texts: str) -> list[bytes]:
    """Return the body of a reply without fault."""
    return [*map(event, texts), event(finish="stop"), USAGE_EVENT, DONE]


class Call:
    """One request, and the ways to answer it.

    Attributes:
        body: The JSON body; empty for a GET.
        headers: The request's headers, names in lower case.
        number: Which request of the server this is, from 0.
    """

    def __init__(self, handler: BaseHTTPRequestHandler, number: int, body: Any) -> None:
        self._handler = handler
        self._released: threading.Event = handler.server.released  # type: ignore[attr-defined]
        self.path = handler.path
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.number = number
        self.body = body

    def stream(self, blocks: list[bytes], *, content_type: str = "text/event-stream") -> None:
        """Answer 200 with a chunked body."""
        self.start(content_type)
        for block in blocks:
            self.send(block)
        self.end()

    def start(self, content_type: str = "text/event-stream") -> None:
        self._handler.send_response(200)
        self._handler.send_header("Content-Type", content_type)
        self._handler.send_header("Transfer-Encoding", "chunked")
        self._handler.end_headers()

    def send(self, block: bytes) -> None:
        self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(block), block))
        self._handler.wfile.flush()

    def end(self) -> None:
        self._handler.wfile.write(b"0\r\n\r\n")

    def stall(self) -> None:
        """Say nothing until the test is over."""
        self._released.wait(PATIENCE_S)

    def hang_up(self) -> None:
        """Close the connection in the middle of things."""
        self._handler.close_connection = True
        self._handler.wfile.flush()
        self._handler.connection.close()

    def answer(self, status: int, body: Any, **headers: str) -> None:
        """Answer with a whole body; text as HTML, anything else as JSON."""
        is_text = isinstance(body, str)
        data = (body if is_text else json.dumps(body)).encode()
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", "text/html" if is_text else "application/json")
        self._handler.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.end_headers()
        self._handler.wfile.write(data)

    def refuse(self, status: int, message: str, **error: Any) -> None:
        """Answer with an error object."""
        self.answer(status, {"error": {"message": message, **error}})


class FakeEndpoint:
    """A running server.

    Attributes:
        url: Its address, up to ``/v1``.
        port: Its port.
        calls: The requests so far.
        connections: How many connections were made.
    """

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.port = server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.calls: list[Call] = []
        self.connections = 0


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.released = threading.Event()
        self.errors: list[BaseException | None] = []

    def handle_error(self, *_: Any) -> None:
        """Keep what a test's own code raised; clients that leave are part of the tests."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.errors.append(error)


@contextmanager
def serving(play: Callable[[Call], None], *, states_facts: bool = False) -> Iterator[FakeEndpoint]:
    """Run an endpoint whose every request is answered by `play`.

    Questions about the model, which are no calls, are answered by `play` where it `states_facts`;
    else the server knows nothing of them.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            endpoint.connections += 1
            super().setup()

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if len(body) < length:  # the client was ended between the head and the body
                self.close_connection = True
                return
            call = Call(self, len(endpoint.calls), json.loads(body or b"{}"))
            if not states_facts and self._is_question():
                call.answer(404, "404 page not found")
                return
            endpoint.calls.append(call)
            play(call)

        def _is_question(self) -> bool:
            is_get = self.command == "GET" and "x-stainless-lang" in self.headers
            return is_get or self.path == "/api/show"

        do_POST = do_GET = answer  # noqa: N815 - names the server looks for

        def log_message(self, *_: Any) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    endpoint = FakeEndpoint(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
    assert not server.errors, server.errors
