"""``taskweaver acp``: the project as an agent of an editor, on standard input and output."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from taskweaver.cli.opening.projects import open_app
from taskweaver.server.errors import ServerError
from taskweaver.utils.system.requirements import install_command


def run_acp(project: Path | None) -> None:
    """Answer the editor until it goes; notices go to standard error.

    Raises:
        TaskWeaverError: If the project cannot be opened, or a package is missing.
    """
    if find_spec("acp") is None:
        detail = "The Agent Client Protocol needs the package agent-client-protocol:"
        raise ServerError(detail, install_command("acp"))
    with open_app(project) as app:
        from taskweaver.doors.acp.door import serve_acp

        for notice in (*app.warnings, app.announcement):
            sys.stderr.write(f"taskweaver: {notice}\n")
        serve_acp(app)
