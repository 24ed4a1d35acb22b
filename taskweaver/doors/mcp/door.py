"""MCP over HTTP as a door of the server: each user has a server of the protocol's package."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from pydantic import RootModel
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.errors import stopping
from taskweaver.server.operations import EVENTS_TYPE, Call, Door, operation

_PATH = "/mcp"
_SERVERS = "taskweaver.doors.mcp.tool_servers"
_INTERRUPTED_S = 5.0


class McpMessage(RootModel[dict[str, Any]]):
    """A message of the protocol, in JSON-RPC."""


class _Answer(Response):
    """The answer of a user's server to a request whose body was read already."""

    def __init__(self, app: ASGIApp, body: bytes) -> None:
        super().__init__()
        self._app = app
        self._read = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        read = iter([{"type": "http.request", "body": self._read, "more_body": False}])

        async def receive_again() -> Message:
            return next(read, None) or await receive()

        await self._app(scope, receive_again, send)


class McpDoor(Door):
    """MCP over HTTP. The agent API closes the sessions."""

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self._log = sessions.app.log
        self._servers: dict[str, Any] = {}
        self._is_stopping = False

    @operation(
        "POST",
        _PATH,
        "A message of MCP, over streamable HTTP",
        answer_type=EVENTS_TYPE,
    )
    async def _message(self, call: Call, message: McpMessage) -> Response:
        return await self._answer(call, message.model_dump_json().encode())

    @operation(
        "GET",
        _PATH,
        "Messages of the server to a client of MCP",
        answer_type=EVENTS_TYPE,
    )
    @operation("DELETE", _PATH, "End a client's session of MCP")
    async def _stream(self, call: Call) -> Response:
        return await self._answer(call, b"")

    async def _answer(self, call: Call, body: bytes) -> Response:
        # For the first client: the package of the protocol takes a second.
        module = await asyncio.to_thread(import_module, _SERVERS)
        if self._is_stopping:
            raise stopping()
        server = self._servers.get(call.user.name)
        if server is None:
            server = module.UserServer(self._sessions, call.user, _PATH)
            self._servers[call.user.name] = server
        server.sessions.user = call.user
        try:
            await server.started()
        except Exception:
            if self._servers.get(call.user.name) is server:
                del self._servers[call.user.name]  # the next request starts another
            raise
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
