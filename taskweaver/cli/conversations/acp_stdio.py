"""``taskweaver acp``: the project as an agent of an editor, on standard input and output."""

from __future__ import annotations

import os
import stat
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import click

from taskweaver.cli.opening.projects import open_app
from taskweaver.errors import TaskWeaverError
from taskweaver.server.errors import ServerError
from taskweaver.utils.system.installation import install_command


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
    if find_spec("acp") is None:
        detail = "The Agent Client Protocol needs the package agent-client-protocol:"
        raise ServerError(detail, install_command("acp"))
    if not (_can_be_waited_for(sys.stdin) and _can_be_waited_for(sys.stdout)):
        raise NoPipe
    with open_app(project) as app:
        from taskweaver.doors.acp.door import serve_acp

        for notice in (*app.warnings, app.announcement):
            sys.stderr.write(f"taskweaver: {notice}\n")
        serve_acp(app)


def _can_be_waited_for(file: IO[str] | None) -> bool:
    if file is None:  # it was closed before the start
        return False
    mode = os.fstat(file.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or file.isatty()
