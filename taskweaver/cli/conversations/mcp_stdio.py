"""``taskweaver mcp``: the project as an MCP server on standard input and output."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from taskweaver.cli.opening.projects import open_app
from taskweaver.cli.signals import ending_orderly
from taskweaver.mcp.errors import ServerFailed
from taskweaver.utils.system.requirements import install_command


def serve_mcp(project: Path | None) -> None:
    """Serve until standard input ends; notices go to standard error.

    Raises:
        TaskWeaverError: If the project cannot be opened, or the package ``mcp`` is missing.
    """
    if find_spec("mcp") is None:
        why = f"it needs the package mcp: {install_command('mcp')}"
        raise ServerFailed("taskweaver", why)
    with ending_orderly(), open_app(project) as app:
        from taskweaver.doors.mcp.stdio import serve_stdio

        for notice in (*app.warnings, app.announcement):
            sys.stderr.write(f"taskweaver: {notice}\n")
        serve_stdio(app)
