"""``taskweaver mcp``: the project as an MCP server on standard input and output."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from taskweaver.cli.opening.projects import open_app
from taskweaver.cli.signals import ending_orderly
from taskweaver.mcp.errors import ServerFailed
from taskweaver.utils.system.requirements import install_command


@click.command("mcp")
@click.pass_obj
def mcp_command(project: Path | None) -> None:
    """Serve the project to other programs as an MCP server, on standard input and output.

    Notices go to standard error.
    """
    if find_spec("mcp") is None:
        why = f"it needs the package mcp: {install_command('mcp')}"
        raise ServerFailed("taskweaver", why)
    with ending_orderly(), open_app(project) as app:
        from taskweaver.doors.mcp.tool_servers import serve_stdio

        for notice in (*app.warnings, app.announcement):
            sys.stderr.write(f"taskweaver: {notice}\n")
        serve_stdio(app)
