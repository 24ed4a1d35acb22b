"""The server of the protocol's package that a user has, and the sessions behind its tools."""

from __future__ import annotations

import asyncio
import json
import secrets
from functools import partial
from typing import Any

from mcp.server.transport_security import TransportSecuritySettings
from sse_starlette.sse import AppStatus
from starlette.types import ASGIApp, Receive, Scope, Send

from taskweaver.app.service import RoundResult, is_answered
from taskweaver.doors.mcp.tools import PlayedRound, Progress, RoundKind, make_server
from taskweaver.server.accounts import User
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.index import IndexedMessage
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.server.agents.user_sessions import UserSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

_TITLE_CHARS = 60
_MOST_CLIENTS = 64
"""Most sessions of the protocol that a user has open."""
_IDLE_S = 1800.0

# Its streams, on which the package sends, would end with the signal, before the answers.
AppStatus.enable_automatic_graceful_drain = False


class RemoteSessions:
    """The sessions of a user, within the user's quotas; see `ToolSessions`.

    Attributes:
        user: The user, as of the newest request.
    """

    def __init__(self, sessions: AgentSessions, user: User) -> None:
        self.user = user
        self._sessions = sessions

    async def _own(self) -> UserSessions:
        return await self._sessions.of(self.user)

    async def play(
        self, kind: RoundKind, text: str, session: str, branch: str, report: Progress
    ) -> PlayedRound:
        """Play a round as a message of the session; withdraw or stop it when the caller cancels."""
        own = await self._own()
        title = (text.strip().splitlines() or [""])[0][:_TITLE_CHARS]
        conversation = await (own.conversation(session) if session else own.create(title))
        branch = branch or conversation.session.branch
        await own.check_disk(self.user)
        await own.check_kernels(self.user, conversation, branch)
        session_id, after = conversation.session.session_id, conversation.session.events.last
        message = IndexedMessage(f"mcp-{secrets.token_hex(12)}", session_id, branch, kind, text)
        try:
            await conversation.submit(self.user, message)
            await self._follow(conversation, message, after, report)
        finally:
            if message.id in conversation.open_messages:
                await conversation.give_up(message.id)
        return await conversation.index.calls.in_thread(partial(_played, conversation, message))

    async def _follow(
        self, conversation: UserConversation, message: IndexedMessage, after: int, report: Progress
    ) -> None:
        """Report the statuses of a message's branch until it is done."""
        log, end = conversation.session.events, conversation.open_messages.end_of(message.id)
        async for events in self._sessions.readers.follow({"": log}, {"": after}, end):
            for _, event in events:
                fields = json.loads(event.data)
                is_status = event.kind == "post_status_update" and fields["msg"]
                if is_status and fields["branch"] == message.branch:
                    await report(redact_secrets(fields["msg"]))

    async def fork(self, session: str, name: str) -> str:
        """Fork a session; return the name of the branch."""
        conversation = await (await self._own()).conversation(session)
        branch = conversation.session.branch
        return await conversation.change(branch, lambda source: source.fork(name))

    async def remember(self, fact: str, session: str) -> str:
        """Keep a fact on a session's current branch; return the outcome."""
        conversation = await (await self._own()).conversation(session)
        branch = conversation.session.branch
        return await conversation.change(branch, lambda own: own.long_memory.remember(fact))

    async def search(self, query: str, session: str) -> list[dict[str, Any]]:
        """Return messages and stored memory that contain a word of the query."""
        return await (await self._own()).find(query, session)

    async def listed(self) -> list[dict[str, Any]]:
        """Return the sessions, the newest first."""
        found: list[dict[str, Any]] = [
            {
                "session": item.id,
                "changed_at": item.changed_at.isoformat(),
                "rounds": item.rounds,
                "first_query": item.title,
                "problem": item.problem,
            }
            for item in await (await self._own()).listed()
        ]
        masked: list[dict[str, Any]] = redact_secrets_in(found)
        return masked


def _played(conversation: UserConversation, message: IndexedMessage) -> PlayedRound:
    """Return the round that answered a message.

    Raises:
        RequestRefused: If no round began; its text is the reason.
    """
    ended = conversation.message(message.id)
    branch = conversation.branch(message.branch)
    rounds = {round_.id: round_ for round_ in branch.rounds()}
    if ended.round_id not in rounds:
        raise RequestRefused(422, "not-answered", ended.answer or f"It was {ended.state}.")
    round_ = rounds[ended.round_id]
    result = RoundResult(
        answer=redact_secrets(ended.answer),
        session=message.session,
        branch=message.branch,
        is_answered=ended.state == "finished" and is_answered(round_),
        files=list(round_.artifacts),
        warnings=[],
    )
    return PlayedRound(result, branch.execution_cwd, round_.artifacts)


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
        self.sessions = RemoteSessions(sessions, user)
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
