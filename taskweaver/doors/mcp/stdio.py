"""The tools on standard input and output, for the person who started the program."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.mcp.sessions import ToolSessions
from taskweaver.doors.mcp.tools import make_server
from taskweaver.server.accounts import LOCAL_USER, Accounts, User
from taskweaver.server.agents.indexes import FileIndexes
from taskweaver.server.agents.sessions import AgentSessions


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
