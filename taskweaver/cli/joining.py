"""``taskweaver acp``, ``mcp``, ``attach``: a project in editors, agents and Jupyter."""

from __future__ import annotations

import os
import stat
import sys
import threading
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import IO

import click

from taskweaver.cli.open_app import open_app
from taskweaver.cli.printing import tell
from taskweaver.cli.run_server import require_packages
from taskweaver.cli.signals import ending_orderly
from taskweaver.errors import TaskWeaverError


class NoPipe(TaskWeaverError):
    """Standard input or output is no pipe, so no client speaks there."""

    def __str__(self) -> str:
        return "Standard input and output must be pipes: `taskweaver acp` is started by an editor."


@click.command("acp")
@click.pass_obj
def acp_command(project: Path | None) -> None:
    """Answer an editor by the Agent Client Protocol, on standard input and output.

    Notices go to standard error.
    """
    require_packages("acp", "The Agent Client Protocol", "acp")
    if not (_can_be_waited_for(sys.stdin) and _can_be_waited_for(sys.stdout)):
        raise NoPipe
    with open_app(project) as app:
        from taskweaver.doors.acp.door import serve_acp

        tell(*app.warnings, app.announcement)
        serve_acp(app)


def _can_be_waited_for(file: IO[str] | None) -> bool:
    if file is None:  # it was closed before the start
        return False
    mode = os.fstat(file.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or file.isatty()


@click.command("mcp")
@click.pass_obj
def mcp_command(project: Path | None) -> None:
    """Serve the project as an MCP server, on standard input and output.

    Notices go to standard error.
    """
    require_packages("mcp", "The MCP server", "mcp")
    with ending_orderly(), open_app(project) as app:
        from taskweaver.doors.mcp.tool_servers import serve_stdio

        tell(*app.warnings, app.announcement)
        serve_stdio(app)


@click.command("attach")
@click.argument("session", required=False)
@click.option("--branch", metavar="B", help="A branch; by default the current one.")
@click.pass_obj
def attach_command(project: Path | None, *, session: str | None, branch: str | None) -> None:
    """Print a connection file, by which Jupyter clients join the kernel of a session.

    Without SESSION it is the one that was used last. The kernel is that of the process that has
    the session open; where there is none, it runs until this command ends.
    """
    from taskweaver.doors.jupyter.attaching import attached

    with ending_orderly(), open_app(project) as app, attached(app, session, branch) as found:
        click.echo(str(found.file))
        for line in found.problems:
            click.echo(line, err=True)
        join = f"Join it: jupyter console --existing {quote(str(found.file))}"
        if found.is_elsewhere:
            where = f"Another process runs the kernel of session {found.session_id}."
            click.echo(f"{where}\n{join}", err=True)
            return
        where = f"The kernel of session {found.session_id}, branch {found.branch}, runs here."
        click.echo(f"{where} Ctrl-C ends it; its variables are stored.\n{join}", err=True)
        with suppress(KeyboardInterrupt):  # or another signal that ends this command
            threading.Event().wait()


@click.command("kernelspec")
@click.option("--sys-prefix", is_flag=True, help="For this environment, not for the user.")
def kernelspec_command(*, sys_prefix: bool) -> None:
    """Install a kernel for Jupyter: notebooks then start theirs here, warm and in a sandbox."""
    from taskweaver.doors.jupyter.attaching import install_spec

    click.echo(str(install_spec(sys.prefix if sys_prefix else None)))
