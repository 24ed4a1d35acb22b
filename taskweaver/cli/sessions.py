"""``taskweaver sessions``: earlier sessions on disk."""

from __future__ import annotations

from pathlib import Path

import click

from taskweaver.cli.opening import read_source
from taskweaver.cli.options import JSON
from taskweaver.cli.printing import amounts, print_json, safe, say
from taskweaver.config.config_mgt import register_secrets
from taskweaver.session.repair import repair_session
from taskweaver.session.storage.stored_sessions import (
    remove_session,
    require_session,
    stored_sessions,
)
from taskweaver.utils.text import counted

_QUERY_CHARS = 60


@click.group("sessions", invoke_without_command=True)
@JSON
@click.pass_context
def sessions_command(ctx: click.Context, *, as_json: bool) -> None:
    """List the sessions of a project, the newest first.

    A damaged one is listed with its readable rounds.

    Continue one: taskweaver --resume [ID]. `taskweaver doctor` checks the newest ones.
    """
    if ctx.invoked_subcommand is not None:
        return

    found = stored_sessions(_folder(ctx.obj))
    if as_json:
        print_json(found)
        return
    for item in found:
        when = item.changed_at.astimezone().strftime("%Y-%m-%d %H:%M")
        query = " ".join(safe(item.first_query).split())[:_QUERY_CHARS]
        is_open = "  (open)" if item.is_open else ""
        rounds = counted(item.rounds, "round")
        click.echo(f"{item.session_id}  {when}  {rounds:>10}  {query}{is_open}")
        if item.problem:
            say(f"  cannot be opened: {' '.join(item.problem.split())}")
    if not found:
        click.echo("No sessions yet.")


@sessions_command.command()
@click.argument("session_ids", nargs=-1, required=True)
@click.pass_obj
def rm(project: Path | None, session_ids: tuple[str, ...]) -> None:
    """Delete sessions with all their files."""
    for session_id in session_ids:
        remove_session(_folder(project), session_id)
        click.echo(f"{session_id} deleted")


@sessions_command.command()
@click.argument("session_id")
@JSON
@click.pass_obj
def repair(project: Path | None, session_id: str, *, as_json: bool) -> None:
    """Save the readable rounds of a damaged session. The damaged file is kept."""
    done = repair_session(require_session(_folder(project), session_id))
    if as_json:
        print_json(done)
        return
    click.echo(f"saved: {amounts(done.saved)}")
    if done.lost:
        click.echo(f"lost: {amounts(done.lost)}")
    unknown = [name for name in done.damaged if name not in done.lost]
    if unknown:
        click.echo(f"a part of these tables could not be read: {', '.join(unknown)}")
    if done.unfit_file is not None:
        say(f"{done.unfit} rows fit no more; they are in {done.unfit_file}")
    if done.remade:
        say(f"made anew: {', '.join(done.remade)}")
    say(f"The damaged file is kept as {done.damaged_file}")


def _folder(project: Path | None) -> Path:
    """Return the folder of a project's sessions, without opening the project.

    Its secrets are known afterwards.
    """
    src = read_source(project)
    register_secrets(src)
    return Path(src.get_path("workspace.workspace_path")) / "sessions"
