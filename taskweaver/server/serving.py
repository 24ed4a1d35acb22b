"""The server's life: from the operations of the doors to an orderly stop."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from taskweaver.logging.log import TelemetryLogger
from taskweaver.server.errors import ServerError
from taskweaver.server.gate import Gate
from taskweaver.server.guard import LOOPBACK_NAMES, Guard
from taskweaver.server.operations import PATH_OF_PROXY, ApiOperation, Call, Door, openapi_document
from taskweaver.server.problems import problem_response

FINISH_S = 10.0
"""Time for which running work may go on by itself when the server stops."""

_PATH = re.compile(r"(/[A-Za-z0-9._~%@+-]+)+")
_MORE_S = 20.0
_IDLE_S = 15


def make_application(
    doors: Sequence[Door], gate: Gate, hosts: Iterable[str], log: TelemetryLogger
) -> ASGIApp:
    """Return the ASGI application of some doors.

    Args:
        doors: The doors; the caller closes them.
        gate: The gate of every operation.
        hosts: Names by which clients may call the server, besides those of loopback.
        log: The log of failures.
    """
    operations = [operation for door in doors for operation in door.operations]
    statuses = {kind: status for door in doors for kind, status in door.statuses.items()}
    document = cache(partial(openapi_document, operations))  # as long as the rest of a start

    async def openapi(_call: Call) -> Response:
        return JSONResponse(await asyncio.to_thread(document))

    described = ApiOperation("GET", "/openapi.json", openapi, "Description of all operations")
    routes = [
        Route(operation.path, gate.endpoint(operation), methods=[operation.method])
        for operation in (*operations, described)
    ]

    async def problem(request: Request, error: Exception) -> Response:
        return problem_response(error, request.state.request_id, statuses, request.url.path)

    guard = Middleware(Guard, hosts=tuple(hosts), statuses=statuses, log=log)
    app = Starlette(routes=routes, middleware=[guard], exception_handlers={HTTPException: problem})
    app.router.redirect_slashes = False
    return app


class _BelowPath:
    """Middleware that notes the path below which a proxy on this machine shows the server.

    The proxy removes the path from requests, and names it. Addresses in answers begin with it.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        path = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
        peer = scope.get("client") or ("", 0)
        if peer[0] in LOOPBACK_NAMES and _PATH.fullmatch(path):
            scope.setdefault("state", {})[PATH_OF_PROXY] = path
        await self._app(scope, receive, send)


class Server(uvicorn.Server):
    """A server with an orderly end: no new work, running work, then resources."""

    def __init__(
        self,
        app: ASGIApp,
        doors: Sequence[Door],
        on_start: Callable[[], None] = lambda: None,
        *,
        is_behind_proxy: bool = False,
    ) -> None:
        """Prepare to serve. The doors are closed at the end.

        Args:
            app: The application.
            doors: The doors.
            on_start: Called once requests are answered.
            is_behind_proxy: Whether a proxy on this machine says in ``X-Forwarded-For`` which
                client a request is of, and in ``X-Forwarded-Prefix`` below which path; else those
                headers say nothing.
        """
        if is_behind_proxy:  # the outer one asks for the peer, which the inner one replaces
            inner: Any = app  # uvicorn has types of its own
            app = _BelowPath(ProxyHeadersMiddleware(inner, list(LOOPBACK_NAMES)))
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=int(FINISH_S + _MORE_S),
        )
        super().__init__(config)
        logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
        self._doors = doors
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer requests."""
        await super().startup(sockets)
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the running work, then the connections, then the doors."""
        ends = [asyncio.ensure_future(door.finish(FINISH_S)) for door in self._doors]
        try:
            await super().shutdown(sockets)
            await asyncio.gather(*ends)
        finally:
            await asyncio.gather(*(door.close() for door in self._doors))


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Port 0 takes any free one.

    Raises:
        ServerError: If the address cannot be listened at.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=512)
        # Accepted sockets inherit it; asyncio sets it on those alone whose protocol is spelt out.
        # Without it an answer in two parts waits 40 ms for the acknowledgement of the first.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ServerError(
            f"The server cannot listen at {host}:{port}: {reason}.", "Choose another --port."
        ) from error
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the address of a listening socket in a client's form."""
    host, port = listener.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"
