"""Servers of the protocol's package with the tools: of a user over HTTP, or on standard input."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from inspect import getdoc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    CallToolResult,
    ImageContent,
    Resource,
    ResourceLink,
    TextContent,
    ToolAnnotations,
)
from sse_starlette.sse import AppStatus
from starlette.types import ASGIApp, Receive, Scope, Send

from taskweaver import __version__
from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.mcp.tool_sessions import RoundKind, RoundResult, ToolSessions
from taskweaver.errors import TaskWeaverError
from taskweaver.server.accounts import LOCAL_USER, Accounts
from taskweaver.server.admission import User
from taskweaver.server.agents.index import FileIndexes
from taskweaver.server.agents.sessions import AgentSessions
from taskweaver.session.storage.workdir import AddedFile

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_SCHEME = "taskweaver://"
_INSTRUCTIONS = (
    "Answers questions about data: a planner plans, code runs in a live Python kernel. A call "
    "without a session starts a new one; its id comes back. Variables, files and the conversation "
    "stay in the session."
)

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_ACTS = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)


def _facts(session: str, branch: str, name: str) -> dict[str, Any]:
    """Return the facts about a file that a resource has."""
    uri = f"{_SCHEME}{session}/{quote(branch, safe='')}/{quote(name)}"
    return {"uri": uri, "name": name, "mime_type": mimetypes.guess_type(name)[0]}


class _SessionServer(MCPServer[Any]):
    """A server that lists the files of sessions as resources."""

    sessions: ToolSessions

    async def list_resources(self) -> list[Resource]:
        """Return the files."""
        return [Resource(**_facts(*place)) for place in await self.sessions.files()]


def make_server(sessions: ToolSessions) -> MCPServer[Any]:
    """Return a server with the tools on some sessions."""
    server = _SessionServer(
        "taskweaver", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING"
    )
    server.sessions = sessions
    _add_rounds(server, sessions)
    _add_others(server, sessions)
    _add_files(server, sessions)
    # The package announces prompts also where there are none, and has no option.
    handlers = getattr(getattr(server, "_lowlevel_server", None), "_request_handlers", {})
    for method in [name for name in handlers if name.startswith("prompts/")]:
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
            fact: The fact, as a sentence; before it the facts that it replaces: "replaces p7: ...".
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


def _add_files(server: MCPServer[Any], sessions: ToolSessions) -> None:
    """Add the files of sessions, down as resources and up by a tool."""

    @server.resource(f"{_SCHEME}{{session}}/{{branch}}/{{+path}}", name="file")
    async def file(session: str, branch: str, path: str) -> str | bytes:
        """A file of a session's working directory."""
        try:
            return await sessions.read_file(session, branch, path)
        except TaskWeaverError as error:
            raise ResourceError(str(error)) from error

    @_tool(server, _ACTS)
    async def add_file(
        name: str,
        content: str,
        session: str = "",
        branch: str = "",
        encoding: Literal["text", "base64"] = "text",
    ) -> dict[str, str]:
        """Write a file of up to 3 MB into a session's working directory, in place of one there.

        Args:
            name: Name of the file, without folders; questions and code name it so.
            content: Its content.
            session: Id of a session; empty starts a new one.
            branch: A branch of it, as `fork` returned; empty takes the current one.
            encoding: How the content is written.
        """
        try:
            plain = base64.b64decode(content, validate=True) if encoding == "base64" else None
        except ValueError as error:
            raise ToolError(f"The content is not valid base64: {error}.") from error
        given = AddedFile(name=name, content=content.encode() if plain is None else plain)
        return await _worded(sessions.add_file(given, session, branch))


async def _play(
    sessions: ToolSessions, ctx: Context, kind: RoundKind, text: str, place: tuple[str, str]
) -> CallToolResult:
    """Play a round, report the progress, and return the answer with the figures."""
    steps = 0

    async def report(status: str) -> None:
        nonlocal steps
        steps += 1
        await ctx.report_progress(float(steps), None, status)

    result, figures, files = await _worded(sessions.play(kind, text, *place, report))
    images = [
        ImageContent(data=base64.b64encode(figure.data).decode(), mime_type=figure.mime)
        for figure in figures
        if figure.data
    ]
    links = [ResourceLink(**_facts(result.session, result.branch, name)) for name in files]
    return CallToolResult(
        content=[TextContent(text=result.answer), *images, *links],
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
