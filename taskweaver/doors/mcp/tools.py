"""The tools of the MCP server."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from inspect import getdoc
from typing import Annotated, Any, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ImageContent, TextContent, ToolAnnotations

from taskweaver import __version__
from taskweaver.doors.mcp.sessions import RoundKind, RoundResult, ToolSessions
from taskweaver.errors import TaskWeaverError
from taskweaver.face.answer import is_picture, read_figures

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
    """Return a decorator that adds a tool, described by its docstring without the indentation."""
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
    """Add the tools that play none."""

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
    """Play a round, report its progress, and return its answer with the figures."""
    steps = 0

    async def report(status: str) -> None:
        nonlocal steps
        steps += 1
        await ctx.report_progress(float(steps), None, status)

    played = await _worded(sessions.play(kind, text, *place, report))
    pictures = filter(is_picture, played.artifacts)
    images = [
        ImageContent(data=base64.b64encode(figure.data).decode(), mime_type=figure.mime)
        for figure in read_figures(pictures, played.folder)
        if figure.data
    ]
    return CallToolResult(
        content=[TextContent(text=played.result.answer), *images],
        structured_content=asdict(played.result),
    )


async def _worded(work: Awaitable[T]) -> T:
    """Await a function; the reason of a failure is shown to the caller."""
    try:
        return await work
    except (TaskWeaverError, OSError) as error:
        raise ToolError(str(error)) from error
