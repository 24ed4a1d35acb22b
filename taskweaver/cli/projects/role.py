"""``taskweaver role``: make a role of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from taskweaver.cli.opening.folder import require_folder


@click.group()
@click.pass_obj
def role(project: Path | None) -> None:
    """Make a role of your own; `taskweaver doctor` lists all of them."""
    require_folder(project)


@role.command()
@click.argument("name")
@click.pass_obj
def new(project: Path | None, name: str) -> None:
    """Write a small role that works, to be changed.

    For example: taskweaver -p sales role new price_list
    """
    from taskweaver.cli.projects.new_role import create_role

    for line in create_role(project, name):
        click.echo(line)
