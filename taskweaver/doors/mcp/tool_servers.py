"""Servers of the protocol's package with the tools: of a user over HTTP, or on standard input."""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict, dataclass
from inspect import getdoc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, ImageContent, TextContent, ToolAnnotations
from sse_starlette.sse import AppStatus
from starlette.types import ASGIApp, Receive, Scope, Send

from taskweaver import __version__
from taskweaver.app.app import TaskWeaverApp
from taskweaver.errors import TaskWeaverError
from taskweaver.face.answer import AnswerFigure, is_picture, read_figures
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round
from taskweaver.server.accounts import LOCAL_USER, Accounts, User
from taskweaver.server.agents.conversation import UserConversation
from taskweaver.server.agents.index import FileIndexes, IndexedMessage
from taskweaver.server.agents.sessions import PROGRESS, AgentSessions, SilentMessage
from taskweaver.server.agents.user_sessions import UserSessions
from taskweaver.server.errors import RequestRefused
from taskweaver.session.branches.branch import SessionBranch
from taskweaver.session.branches.turn import require_text
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

Progress = Callable[[str], Coroutine[Any, Any, None]]
RoundKind = Literal["ask", "code"]

_TITLE_CHARS = 60


@dataclass(frozen=True)  # without slots, which the package takes for defaults
class RoundResult:
    """Result of a round.

    Attributes:
        answer: The answer, or the reason there is none.
        session: Id of the session, to continue it.
        branch: Its branch.
        is_answered: Whether the round was answered.
        files: Files that were made: absolute paths for a program of this machine, else names in
            the working directory.
        warnings: Parts that failed while the round continued without them.
    """

    answer: str
    session: str
    branch: str
    is_answered: bool
    files: list[str]
    warnings: list[str]


class ToolSessions:
    """The sessions of a user, within the user's quotas. All methods raise TaskWeaverError.

    A call without a branch works on the session's current one, which no call changes.

    Attributes:
        user: The user, as of the newest request.
    """

    def __init__(self, sessions: AgentSessions, user: User, *, is_local: bool = False) -> None:
        self.user = user
        self._sessions = sessions
        self._is_local = is_local

    async def _own(self) -> UserSessions:
        return await self._sessions.of(self.user)

    async def play(
        self, kind: RoundKind, text: str, session: str, branch: str, report: Progress
    ) -> tuple[RoundResult, list[AnswerFigure]]:
        """Play a round as a message of the session, and return the result and the figures.

        It is withdrawn or stopped when the caller cancels.
        """
        require_text(text)  # before a session is made for it
        own = await self._own()
        title = (text.strip().splitlines() or [""])[0][:_TITLE_CHARS]
        conversation = await (own.conversation(session) if session else own.create(title))
        branch = branch or conversation.session.branch
        await own.check_disk(self.user)
        session_id, message_id = conversation.session.session_id, f"mcp-{secrets.token_hex(12)}"
        message = IndexedMessage(message_id, session_id, branch, kind, text)
        sent, warnings = SilentMessage(self._sessions, self.user, conversation, message), []
        try:
            await sent.submit()
            async for event, line in sent.events():
                if event in PROGRESS:
                    await report(redact_secrets(line))
                elif event == "round_warning":
                    warnings.append(redact_secrets(line))
        finally:
            await sent.give_up()
        in_thread = conversation.index.calls.in_thread
        return await in_thread(self._played, conversation, message, warnings)

    def _played(
        self, conversation: UserConversation, message: IndexedMessage, warnings: list[str]
    ) -> tuple[RoundResult, list[AnswerFigure]]:
        """Return result and figures of the round that answered a message.

        Raises:
            RequestRefused: If no round began; its text is the reason.
        """
        ended = conversation.message(message.id)
        branch = conversation.branch(message.branch)
        rounds = {round_.id: round_ for round_ in branch.rounds()}
        if ended.round_id not in rounds:
            raise RequestRefused(422, "not-answered", ended.answer or f"It was {ended.state}.")
        round_, folder = rounds[ended.round_id], branch.execution_cwd
        files = dict.fromkeys(round_.artifacts)
        result = RoundResult(
            answer=redact_secrets(ended.answer),
            session=message.session,
            branch=message.branch,
            is_answered=ended.state == "finished" and _is_answered(round_),
            files=[str(folder / name) if self._is_local else name for name in files],
            warnings=warnings,
        )
        return result, [*read_figures(filter(is_picture, round_.artifacts), folder)]

    async def fork(self, session: str, name: str) -> str:
        """Fork a session, and return the name of the branch."""
        return await self._change(session, lambda source: source.fork(name))

    async def remember(self, fact: str, session: str) -> str:
        """Keep a fact on a session's current branch, and return the outcome."""
        return await self._change(session, lambda branch: branch.long_memory.remember(fact))

    async def _change(self, session: str, work: Callable[[SessionBranch], str]) -> str:
        """Change a session's current branch after the answers that are under way."""
        conversation = await (await self._own()).conversation(session)
        return await conversation.change(conversation.session.branch, work, waits=True)

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


def _is_answered(round_: Round) -> bool:
    """Return whether a round was answered, and any last cell ran to the end."""
    states = round_.post_list[-1].get_attachment(AttachmentType.execution_status)
    has_failed = any(str(state.content) == "FAILURE" for state in states)
    return round_.is_answered and not has_failed


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_INSTRUCTIONS = (
    "Answers questions about data: a planner plans, code runs in a live Python kernel. A call "
    "without a session starts a new one; its id comes back. Variables, files and the conversation "
    "stay in the session."
)

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_ACTS = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)


def make_server(sessions: ToolSessions) -> MCPServer[Any]:
    """Return a server with the tools on some sessions."""
    server: MCPServer[Any] = MCPServer(
        "taskweaver", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING"
    )
    _add_rounds(server, sessions)
    _add_others(server, sessions)
    # The package announces prompts and resources also where there are none, and has no option.
    handlers = getattr(getattr(server, "_lowlevel_server", None), "_request_handlers", {})
    for method in [name for name in handlers if name.startswith(("prompts/", "resources/"))]:
        del handlers[method]
    return server


def _tool(
    server: MCPServer[Any], effects: ToolAnnotations, name: str | None = None
) -> Callable[[F], F]:
    """Return a decorator that adds a function as a tool, described by the docstring."""
    return lambda function: server.tool(name, description=getdoc(function), annotations=effects)(
        function
    )


def _add_rounds(server: MCPServer[Any], sessions: ToolSessions) -> None:
    """Add the tools that play rounds."""

    @_tool(server, _ACTS)
    async def ask(  # noqa: D417 - ctx is not an argument of the caller
        question: str, ctx: Context, session: str = "", branch: str = ""
    ) -> Annotated[CallToolResult, RoundResult]:
        """Ask a question in plain words about data, files and earlier answers of the session.

        Args:
            question: The question. Name the files it is about.
            session: Id of a session to continue; empty starts a new one.
            branch: A branch of it, as `fork` returned; empty takes the current one.
        """
        return await _play(sessions, ctx, "ask", question, (session, branch))

    @_tool(server, _ACTS)
    async def run_code(  # noqa: D417 - ctx is not an argument of the caller
        code: str, ctx: Context, session: str = "", branch: str = ""
    ) -> Annotated[CallToolResult, RoundResult]:
        """Run Python code in the session's live kernel; variables stay for later calls.

        Args:
            code: The code; the value of its last expression is the result.
            session: Id of a session to go on with; empty starts a new one.
            branch: A branch of it, as `fork` returned; empty takes the current one.
        """
        return await _play(sessions, ctx, "code", code, (session, branch))


def _add_others(server: MCPServer[Any], sessions: ToolSessions) -> None:
    """Add the tools that play no round."""

    @_tool(server, _ADDS)
    async def remember(fact: str, session: str) -> dict[str, str]:
        """Keep a fact for later questions of a session.

        Args:
            fact: The fact, as a sentence.
            session: Id of the session.
        """
        return {"outcome": await _worded(sessions.remember(fact, session))}

    @_tool(server, _READS)
    async def memory_search(query: str, session: str = "") -> list[dict[str, Any]]:
        """Search questions, answers and stored memory by words.

        Args:
            query: Words to look for; one match suffices.
            session: Id of a session; empty searches all of them.
        """
        return await _worded(sessions.search(query, session))

    @_tool(server, _ADDS)
    async def fork(session: str, name: str = "") -> dict[str, str]:
        """Fork a session with its variables and files; the original stays as it is.

        Args:
            session: Id of the session.
            name: Name of the branch; empty makes one up.
        """
        return {"branch": await _worded(sessions.fork(session, name))}

    @_tool(server, _READS, "sessions")
    async def listed() -> list[dict[str, Any]]:
        """List the sessions there are, the newest first."""
        return await _worded(sessions.listed())


async def _play(
    sessions: ToolSessions, ctx: Context, kind: RoundKind, text: str, place: tuple[str, str]
) -> CallToolResult:
    """Play a round, report the progress, and return the answer with the figures."""
    steps = 0

    async def report(status: str) -> None:
        nonlocal steps
        steps += 1
        await ctx.report_progress(float(steps), None, status)

    result, figures = await _worded(sessions.play(kind, text, *place, report))
    images = [
        ImageContent(data=base64.b64encode(figure.data).decode(), mime_type=figure.mime)
        for figure in figures
        if figure.data
    ]
    return CallToolResult(
        content=[TextContent(text=result.answer), *images],
        structured_content=asdict(result),
    )


async def _worded(work: Awaitable[T]) -> T:
    """Await a function. The reason of a failure is shown to the caller."""
    try:
        return await work
    except (TaskWeaverError, OSError) as error:
        raise ToolError(str(error)) from error


_MOST_CLIENTS = 64
"""Most sessions of the protocol that a user has open."""
_IDLE_S = 1800.0

# Its streams, on which the package sends, would end with the signal, before the answers.
AppStatus.enable_automatic_graceful_drain = False


class UserServer:
    """The server of a user. Needs `started` and `stop`.

    Attributes:
        sessions: The user's sessions.
    """

    def __init__(self, sessions: AgentSessions, user: User, path: str) -> None:
        """Start the server, in the running event loop.

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
        """Wait until requests are answered. Raises the error of a failed start."""
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
        """End streams and calls."""
        self._end.set()
        await self._task


def serve_stdio(app: TaskWeaverApp) -> None:
    """Serve the project's own sessions until standard input ends."""
    # The files of a server are its own: several such programs may run beside one.
    with TemporaryDirectory(prefix="taskweaver-mcp-") as name:
        folder = Path(name)
        with Accounts.at(folder / "accounts.sqlite") as accounts:
            sessions = AgentSessions(app, accounts, folder, FileIndexes(folder))
            asyncio.run(_serve(sessions))


async def _serve(sessions: AgentSessions) -> None:
    own = ToolSessions(sessions, User(LOCAL_USER), is_local=True)
    try:
        await make_server(own).run_stdio_async()
    finally:
        await sessions.finish(0)
        await sessions.close()
