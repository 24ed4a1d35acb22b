"""A proxy in front of a server, with a login and a path of its own, as a hub of notebooks has."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from patience import PATIENCE_S
from served import Served

PATH = "/user/ann/taskweaver/"
_EVENTS = "text/event-stream"
_OF_A_CONNECTION = {"connection", "transfer-encoding", "content-length", "keep-alive"}


class LoginProxy(ThreadingHTTPServer):
    """A proxy that adds the server's token to requests that have its cookie.

    It passes on an answer as it comes only where the request accepts nothing but events. Requests
    without a good cookie are sent away, to a login. Events that do not pass leave their connections
    open and quiet.
    """

    daemon_threads = True

    def __init__(self, server: Served) -> None:
        self.target = urlsplit(server.url).netloc
        self.token = server.token.text
        self.paths: list[str] = []
        self.sent_away: list[str] = []
        self.is_logged_in = True
        self.passes = threading.Event()
        self.passes.set()
        super().__init__(("127.0.0.1", 0), _Passing)
        self.address = f"http://127.0.0.1:{self.server_port}{PATH}"


class _Passing(BaseHTTPRequestHandler):
    server: LoginProxy

    def log_message(self, *_args: Any) -> None:
        """Write nothing."""

    def _pass(self) -> None:
        self.server.paths.append(self.path)
        is_start = self.path.partition("?")[0] == PATH
        has_cookie = "login=1" in self.headers.get("Cookie", "")
        if not self.path.startswith(PATH):
            self.send_error(404)
        elif not (is_start or (self.server.is_logged_in and has_cookie)):
            self.server.sent_away.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/login")
            self.end_headers()
        else:
            self._forward(is_start=is_start)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass  # noqa: N815

    def _forward(self, *, is_start: bool) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        sent = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        sent["Authorization"] = f"Bearer {self.server.token}"
        behind = http.client.HTTPConnection(self.server.target, timeout=PATIENCE_S)
        try:
            path = self.path[len(PATH) - 1 :]
            behind.request(self.command, path, self.rfile.read(size), sent)
            answer = behind.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _OF_A_CONNECTION:
                    self.send_header(name, value)
            if is_start:
                self.send_header("Set-Cookie", "login=1; Path=/; HttpOnly; SameSite=Lax")
            self.end_headers()
            is_stream = self.headers.get("Accept") == _EVENTS
            read = answer.read1 if is_stream else answer.read
            while part := read():
                assert not is_stream or self.server.passes.wait(PATIENCE_S)
                self.wfile.write(part)
        except ConnectionError:
            pass  # the browser, or the server, went
        finally:
            behind.close()


@contextmanager
def login_proxy(server: Served) -> Iterator[LoginProxy]:
    with LoginProxy(server) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, name="proxy")
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join(PATIENCE_S)
