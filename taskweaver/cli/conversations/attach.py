"""``taskweaver attach`` and ``kernelspec``: kernels of sessions in Jupyter, and Jupyter's here."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path

import click

from taskweaver.cli.opening.projects import open_app
from taskweaver.cli.signals import ending_orderly
from taskweaver.doors.jupyter.attaching import attached


@click.command("attach")
@click.argument("session", required=False)
@click.option("--branch", metavar="B", help="A branch; by default the current one.")
@click.pass_obj
def attach_command(project: Path | None, *, session: str | None, branch: str | None) -> None:
    """Print a connection file, by which Jupyter clients join the kernel of a session.

    Without SESSION it is the one that was used last. The kernel is that of the process that has
    the session open; where there is none, it runs until this command ends.
    """
    with ending_orderly(), open_app(project) as app, attached(app, session, branch) as found:
        click.echo(str(found.file))
        for line in found.problems:
            click.echo(line, err=True)
        join = f"Join it: jupyter console --existing {found.file}"
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
