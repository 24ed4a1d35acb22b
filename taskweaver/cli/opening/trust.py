"""``taskweaver trust``: decide about a project folder, or forget the decision."""

from __future__ import annotations

from pathlib import Path

import click

from taskweaver.cli.opening.consent import consent_to, inspect, show_effects
from taskweaver.cli.opening.folder import require_folder
from taskweaver.cli.options import FOLDER
from taskweaver.trust.answers import forget


@click.command("trust")
@click.argument("folder", required=False, type=FOLDER)
@click.option("--forget", "is_forgotten", is_flag=True, help="Forget the decision.")
@click.pass_obj
def trust_command(project: Path | None, *, folder: Path | None, is_forgotten: bool) -> None:
    """Show the code a project runs and the limits it loosens when opened, and decide again.

    At a terminal it asks; elsewhere `taskweaver --trust trust FOLDER` gives consent.
    """
    target = folder or project
    require_folder(target)
    inspection = inspect(target)
    was_decided = forget(inspection.folder)
    if is_forgotten:
        click.echo("Forgotten." if was_decided else "There was no decision.")
        return
    if not inspection.lines:
        click.echo(f"{inspection.folder} runs and loosens nothing; it needs no trust.")
        return
    if not inspection.digests <= consent_to(target):
        click.echo("Not trusted.")
        return
    click.echo("Trusted:")
    show_effects(inspection)
