"""``taskweaver sessions``: what is on disk of earlier sessions."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

_QUERY_CHARS = 60


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def sessions(ctx: click.Context, *, as_json: bool) -> None:
    """List the sessions of a project, the newest first; `sessions rm` deletes one.

    Go on with one: taskweaver --resume [ID]
    """
    if ctx.invoked_subcommand is not None:
        return
    from taskweaver.console.text import safe
    from taskweaver.session.store import stored_sessions
    from taskweaver.utils.redact import redact_known
    from taskweaver.utils.text import counted

    found = stored_sessions(_folder(ctx.obj))
    if as_json:
        told = json.dumps([asdict(item) for item in found], default=str, indent=2)
        click.echo(redact_known(told))
        return
    for item in found:
        when = item.changed_at.astimezone().strftime("%Y-%m-%d %H:%M")
        query = " ".join(safe(item.first_query).split())[:_QUERY_CHARS]
        is_open = "  (open)" if item.is_open else ""
        rounds = counted(item.rounds, "round")
        click.echo(f"{item.session_id}  {when}  {rounds:>10}  {query}{is_open}")
    if not found:
        click.echo("No sessions yet.")


@sessions.command()
@click.argument("session_ids", nargs=-1, required=True)
@click.pass_obj
def rm(project: Path | None, session_ids: tuple[str, ...]) -> None:
    """Delete sessions with all their files."""
    from taskweaver.session.store import remove_session

    for session_id in session_ids:
        remove_session(_folder(project), session_id)
        click.echo(f"{session_id} deleted")


def _folder(project: Path | None) -> Path:
    """Return the folder of a project's sessions, without opening the project.

    Its secrets are known afterwards.
    """
    from taskweaver.cli.consent import read_source
    from taskweaver.config.secrets import register_secrets

    src = read_source(project)
    register_secrets(src)
    return Path(src.get_path("workspace.workspace_path")) / "sessions"
