"""The server of the protocol's package that a user has, over HTTP."""

from __future__ import annotations

import asyncio

from mcp.server.transport_security import TransportSecuritySettings
from sse_starlette.sse import AppStatus
from starlette.types import ASGIApp, Receive, Scope, Send

from taskweaver.doors.mcp.sessions import ToolSessions
from taskweaver.doors.mcp.tools import make_server
from taskweaver.server.accounts import User
from taskweaver.server.agents.sessions import AgentSessions

_MOST_CLIENTS = 64
"""Most sessions of the protocol that a user has open."""
_IDLE_S = 1800.0

# Its streams, on which the package sends, would end with the signal, before the answers.
AppStatus.enable_automatic_graceful_drain = False


class UserServer:
    """The server of a user. Start and stop it.

    Attributes:
        sessions: The user's sessions.
    """

    def __init__(self, sessions: AgentSessions, user: User, path: str) -> None:
        """Start it, in the running event loop.

        Args:
            sessions: The sessions of all users.
            user: The user.
            path: Path of its requests.
        """
        self.sessions = ToolSessions(sessions, user)
        app = make_server(self.sessions).streamable_http_app(
            streamable_http_path=path,
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
