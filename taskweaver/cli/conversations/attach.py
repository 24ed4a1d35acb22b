"""``taskweaver attach``: a connection file, and the kernel behind it."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from taskweaver.cli.opening.projects import open_app
from taskweaver.cli.signals import ending_orderly
from taskweaver.doors.jupyter.attaching import AttachedKernel, attached


def attach_to(project: Path | None, session_id: str | None, branch: str | None) -> None:
    """Print the connection file of a session's kernel, and run that kernel if nothing else does.

    Raises:
        TaskWeaverError: If the project or the session cannot be opened.
    """
    with ending_orderly(), open_app(project) as app, attached(app, session_id, branch) as found:
        click.echo(str(found.file))
        for line in [*found.problems, *_explained(found)]:
            click.echo(line, err=True)
        if not found.is_elsewhere:
            _wait()


def _explained(found: AttachedKernel) -> list[str]:
    join = f"Join it: jupyter console --existing {found.file}"
    if found.is_elsewhere:
        return [f"Another process runs the kernel of session {found.session_id}.", join]
    return [
        f"The kernel of session {found.session_id}, branch {found.branch}, runs here."
        " Ctrl-C ends it; its variables are stored.",
        join,
    ]


def _wait() -> None:
    """Wait for a signal that ends this command."""
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return
