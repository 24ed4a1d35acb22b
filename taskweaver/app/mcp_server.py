"""TaskWeaver as an MCP server. Imported only to serve: it needs the package ``mcp``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio.from_thread
import anyio.to_thread
from mcp.server import MCPServer  # noqa: TID253
from mcp.server.mcpserver import Context  # noqa: TID253
from mcp.server.mcpserver.exceptions import ToolError  # noqa: TID253

from taskweaver import __version__
from taskweaver.app.service import AppService, Report, RoundResult
from taskweaver.errors import TaskWeaverError
from taskweaver.session.session import Session

T = TypeVar("T")

_INSTRUCTIONS = (
    "Answers questions about data: a planner plans, code runs in a live Python kernel. A call "
    "without a session starts a new one; its id comes back. Variables, files and the conversation "
    "stay in the session."
)


def make_server(service: AppService) -> MCPServer[Any]:
    """Return a server with the tools ask, run_code, memory_search, fork and sessions."""
    server: MCPServer[Any] = MCPServer(
        "taskweaver", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING"
    )

    @server.tool()
    async def ask(  # noqa: D417 - ctx is not an argument of the caller
        question: str, ctx: Context, session: str = "", branch: str = ""
    ) -> RoundResult:
        """Ask a question in plain words about data, files and earlier answers of the session.

        Args:
            question: The question. Name the files it is about.
            session: Id of a session to continue; empty starts a new one.
            branch: A branch of it, as `fork` returned; empty takes the current one.
        """
        opened = await _blocking(lambda: service.open(session, branch))
        return await _round(ctx, opened, lambda report: service.ask(opened, question, report))

    @server.tool()
    async def run_code(  # noqa: D417 - ctx is not an argument of the caller
        code: str, ctx: Context, session: str = "", branch: str = ""
    ) -> RoundResult:
        """Run Python code in the session's live kernel; variables stay for later calls.

        Args:
            code: The code; the value of its last expression is the result.
            session: Id of a session to go on with; empty starts a new one.
            branch: A branch of it, as `fork` returned; empty takes the current one.
        """
        opened = await _blocking(lambda: service.open(session, branch))
        return await _round(ctx, opened, lambda report: service.run_code(opened, code, report))

    @server.tool()
    async def memory_search(query: str, session: str = "") -> list[dict[str, Any]]:
        """Search questions, answers and stored memory by words.

        Args:
            query: Words to look for; one match suffices.
            session: Id of a session; empty searches all of them.
        """
        return await _blocking(lambda: service.memory_search(query, session))

    @server.tool()
    async def fork(session: str, name: str = "") -> dict[str, str]:
        """Fork a session with its variables and files; the original stays as it is.

        Args:
            session: Id of the session.
            name: Name of the branch; empty makes one up.
        """
        return {"branch": await _blocking(lambda: service.fork(session, name))}

    @server.tool()
    async def sessions() -> list[dict[str, Any]]:
        """List the sessions there are, the newest first."""
        return await _blocking(service.sessions)

    return server


async def _round(
    ctx: Context, session: Session, play: Callable[[Report], RoundResult]
) -> RoundResult:
    """Play a round in a thread; report its progress, and interrupt it when the caller cancels."""
    steps = 0

    def report(status: str) -> None:
        nonlocal steps
        steps += 1
        anyio.from_thread.run(ctx.report_progress, float(steps), None, status)

    try:
        return await _blocking(lambda: play(report))
    except anyio.get_cancelled_exc_class():
        session.interrupt()
        raise


async def _blocking(work: Callable[[], T]) -> T:
    """Run a blocking function in a thread; the reason of a failure is shown to the caller."""
    try:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except (TaskWeaverError, OSError) as error:
        raise ToolError(str(error)) from error
