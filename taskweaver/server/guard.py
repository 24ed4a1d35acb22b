"""The outermost layer of the server: request ids, Host and Origin, and the form of errors."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from contextlib import ExitStack
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.errors import RequestRefused
from taskweaver.server.problems import Statuses, problem_response

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
PICTURES = "/v1/pictures/"
"""Beginning of the signed addresses of pictures, which foreign pages may show."""
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s@:/?#\\\[\]]+)(:\d{1,5})?")
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHOWING = ("no-cors", "navigate")
"""Modes in which a browser asks for what it shows, but lets no script of a page read."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Middleware that lets requests through for known hosts and from no foreign page."""

    def __init__(
        self, app: ASGIApp, hosts: Iterable[str], statuses: Statuses, log: TelemetryLogger
    ) -> None:
        """Guard an application.

        Args:
            app: The application.
            hosts: Names by which clients may call the server, besides those of loopback.
            statuses: Status of the response for each class of errors.
            log: The log of failures.
        """
        self._app = app
        self._hosts = {name.lower().strip("[]") for name in (*LOOPBACK_NAMES, *hosts)}
        self._statuses = statuses
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            raise RuntimeError(f"there is no handler for {scope['type']}")
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        held = ExitStack()  # until the answer is sent, or the client has left
        scope.setdefault("state", {}).update(request_id=request_id, held=held)
        has_begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                added = MutableHeaders(scope=message)
                added["X-Request-ID"] = request_id
                for name, value in _HEADERS.items():
                    added.setdefault(name, value)
            await send(message)

        try:
            self._check(headers, scope["path"])
            await self._app(scope, receive, send_guarded)
        except Exception as error:
            response = problem_response(error, request_id, self._statuses, scope["path"])
            has_left = isinstance(error, ClientDisconnect)
            if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR and not has_left:
                where = f"{scope['method']} {scope['path']}"
                self._log.exception(f"request {request_id}: {where} failed")
            if has_begun:
                raise  # the connection is closed, so that the client sees that the answer is cut
            await response(scope, receive, send_guarded)
        finally:
            held.close()

    def _check(self, headers: Headers, path: str) -> None:
        """Refuse requests that a foreign page may have sent."""
        host = headers.get("host", "")
        named = _HOST.fullmatch(host.lower())
        if named is None or named[1].strip("[]") not in self._hosts:
            # A page of a name that was rebound to this address sends its own name.
            detail = f"The server is not called {host[:100]!r}; --allow-host NAME adds a name."
            raise RequestRefused(421, "host", detail)
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "none")
        is_foreign = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
        # A link of a foreign page may open the page: what it shows needs a token of this origin.
        is_visit = path == "/" and headers.get("sec-fetch-mode") == "navigate"
        is_shown = path.startswith(PICTURES) and headers.get("sec-fetch-mode") in _SHOWING
        is_allowed = site in {"none", "same-origin"} or is_visit or is_shown
        if is_foreign or not is_allowed:
            detail = "Pages of other origins may not use this server."
            if origin is not None and is_foreign:
                pair = f"the header Origin is {origin[:100]!r}, and Host is {host[:100]!r}"
                detail += f" Here {pair}; a proxy must pass on Host as it comes, with its port."
            raise RequestRefused(403, "origin", detail)
