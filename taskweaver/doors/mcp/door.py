"""MCP over HTTP as a door of the server: each user has a server of the protocol's package."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mcp.server.transport_security import TransportSecuritySettings
from pydantic import RootModel
from sse_starlette.sse import AppStatus
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taskweaver.doors.mcp.remote import RemoteSessions
from taskweaver.doors.mcp.tools import make_server
from taskweaver.server.accounts import User
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import stopping
from taskweaver.server.operations import EVENTS_TYPE, ApiOperation, Call
from taskweaver.session.errors import LimitReached, SessionError

_PATH = "/mcp"
_MOST_CLIENTS = 64
"""Most sessions of the protocol that a user has open."""
_IDLE_S = 1800.0
_INTERRUPTED_S = 5.0


class McpMessage(RootModel[dict[str, Any]]):
    """A message of the protocol, in JSON-RPC."""


class _UserServer:
    """The server of a user. Start and stop it."""

    def __init__(self, sessions: AgentSessions, user: User) -> None:
        self.sessions = RemoteSessions(sessions, user)
        app = make_server(self.sessions).streamable_http_app(
            streamable_http_path=_PATH,
            session_idle_timeout=_IDLE_S,
            max_sessions=_MOST_CLIENTS,
            # The guard has checked Host and Origin by the rules of all doors.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._app: ASGIApp = app
        self._lifespan = app.router.lifespan_context(app)
        self._has_started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._end = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._calls = 0
        self._task = asyncio.ensure_future(self._live())

    async def _live(self) -> None:
        """Hold the resources in one task, as the package demands."""
        try:
            async with self._lifespan:
                self._has_started.set_result(None)
                await self._end.wait()
        except BaseException as error:
            if self._has_started.done():
                raise
            self._has_started.set_exception(error)

    async def started(self) -> None:
        """Wait until requests are answered; raises what it failed to start with."""
        await asyncio.shield(self._has_started)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        is_call = scope["method"] == "POST"  # a GET is a stream that the client leaves open
        self._calls += is_call
        if is_call:
            self._is_idle.clear()
        try:
            await self._app(scope, receive, send)
        finally:
            self._calls -= is_call
            if not self._calls:
                self._is_idle.set()

    async def settle(self) -> None:
        """Wait until all calls are answered."""
        await self._is_idle.wait()

    async def stop(self) -> None:
        """End its streams and calls."""
        self._end.set()
        await self._task


class _Answer(Response):
    """The answer of a user's server to a request whose body was read already."""

    def __init__(self, app: ASGIApp, body: bytes) -> None:
        super().__init__()
        self._app = app
        self._read = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        has_read = False

        async def receive_again() -> Message:
            nonlocal has_read
            if has_read:
                return await receive()
            has_read = True
            return {"type": "http.request", "body": self._read, "more_body": False}

        await self._app(scope, receive_again, send)


class McpDoor:
    """MCP over HTTP. The agent API, whose sessions it uses, closes them.

    Attributes:
        operations: Its operations.
        statuses: Status of the response for each class of errors.
    """

    statuses: Mapping[type[Exception], int] = MappingProxyType(
        {LimitReached: 403, SessionError: 409}
    )

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self._log = sessions.app.log
        self._servers: dict[str, _UserServer] = {}
        self._is_stopping = False
        # Its streams, on which the package sends, would end with the signal, before the answers.
        AppStatus.enable_automatic_graceful_drain = False
        self.operations = [
            ApiOperation(
                "POST", _PATH, self._answer, "A message of MCP, over streamable HTTP",
                body=McpMessage, answer_type=EVENTS_TYPE, problems=(404,),
            ),
            ApiOperation(
                "GET", _PATH, self._answer, "Messages of the server to a client of MCP",
                answer_type=EVENTS_TYPE, problems=(404,),
            ),
            ApiOperation("DELETE", _PATH, self._answer, "End a client's session of MCP"),
        ]  # fmt: skip

    async def _answer(self, call: Call) -> Response:
        if self._is_stopping:
            raise stopping()
        server = self._servers.get(call.user.name)
        if server is None:
            server = self._servers[call.user.name] = _UserServer(self._sessions, call.user)
        server.sessions.user = call.user
        try:
            await server.started()
        except Exception:
            if self._servers.get(call.user.name) is server:
                del self._servers[call.user.name]  # the next request starts another
            raise
        body = call.body.model_dump_json().encode() if call.body is not None else b""
        return _Answer(server.answer, body)

    async def finish(self, grace_s: float) -> None:
        """Let calls end within a time, then end the streams."""
        self._is_stopping = True
        servers = list(self._servers.values())
        try:
            # The agent API interrupts the rounds after that time; their answers still go out.
            async with asyncio.timeout(grace_s + _INTERRUPTED_S):
                for server in servers:
                    await server.settle()
        except TimeoutError:
            self._log.warning("calls of MCP were cut: their rounds did not end in time")
        await asyncio.gather(*(server.stop() for server in servers))

    async def close(self) -> None:
        """Do nothing: the sessions are closed by the agent API."""
