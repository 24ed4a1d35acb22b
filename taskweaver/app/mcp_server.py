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
from taskweaver.app.serving import Said, Serving, Tell
from taskweaver.errors import TaskWeaverError
from taskweaver.session.session import Session

T = TypeVar("T")

_INSTRUCTIONS = (
    "Answers questions about data: a planner plans, code runs in a live Python kernel. A call "
    "without a session starts a new one; its id comes back. Variables, files and the conversation "
    "stay in the session."
)


def make_server(serving: Serving) -> MCPServer[Any]:
    """Return a server with the tools ask, run_code, memory_search, fork and sessions."""
    server: MCPServer[Any] = MCPServer(
        "taskweaver", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING"
    )

    @server.tool()
    async def ask(  # noqa: D417 - ctx is nothing a caller gives
        question: str, ctx: Context, session: str = "", branch: str = ""
    ) -> Said:
        """Ask a question in plain words; data, files and earlier answers of the session count.

        Args:
            question: What to find out. Name the files it is about.
            session: Id of a session to go on with; empty starts a new one.
            branch: A branch of it, as `fork` returned; empty takes the current one.
        """
        opened = await _blocking(lambda: serving.open(session, branch))
        return await _round(ctx, opened, lambda tell: serving.ask(opened, question, tell))

    @server.tool()
    async def run_code(  # noqa: D417 - ctx is nothing a caller gives
        code: str, ctx: Context, session: str = "", branch: str = ""
    ) -> Said:
        """Run Python code in the session's live kernel; variables stay for later calls.

        Args:
            code: The code; the value of its last expression is the result.
            session: Id of a session to go on with; empty starts a new one.
            branch: A branch of it, as `fork` returned; empty takes the current one.
        """
        opened = await _blocking(lambda: serving.open(session, branch))
        return await _round(ctx, opened, lambda tell: serving.run_code(opened, code, tell))

    @server.tool()
    async def memory_search(query: str, session: str = "") -> list[dict[str, Any]]:
        """Search what was asked and answered, and what was kept, by words.

        Args:
            query: Words to look for; any of them counts.
            session: Id of a session; empty searches all of them.
        """
        return await _blocking(lambda: serving.memory_search(query, session))

    @server.tool()
    async def fork(session: str, name: str = "") -> dict[str, str]:
        """Fork a session with its variables and files; the original stays as it is.

        Args:
            session: Id of the session.
            name: Name of the branch; empty makes one up.
        """
        return {"branch": await _blocking(lambda: serving.fork(session, name))}

    @server.tool()
    async def sessions() -> list[dict[str, Any]]:
        """List the sessions there are, the newest first."""
        return await _blocking(serving.sessions)

    return server


async def _round(ctx: Context, session: Session, play: Callable[[Tell], Said]) -> Said:
    """Play a round in a thread; tell its progress, and give it up when the caller does."""
    steps = 0

    def tell(status: str) -> None:
        nonlocal steps
        steps += 1
        anyio.from_thread.run(ctx.report_progress, float(steps), None, status)

    try:
        return await _blocking(lambda: play(tell))
    except anyio.get_cancelled_exc_class():
        session.interrupt()
        raise


async def _blocking(work: Callable[[], T]) -> T:
    """Do what blocks in a thread; a reason for a failure is shown to the caller."""
    try:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except (TaskWeaverError, OSError) as error:
        raise ToolError(str(error)) from error
