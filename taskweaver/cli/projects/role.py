"""``taskweaver role``: the roles of a project, and making one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from taskweaver.cli.opening.folder import require_folder
from taskweaver.cli.options import JSON
from taskweaver.cli.printing import print_json, safe


@click.group()
@click.pass_obj
def role(project: Path | None) -> None:
    """List the roles that can take part, or make one."""
    require_folder(project)


@role.command("list")
@JSON
@click.pass_obj
def list_roles(project: Path | None, *, as_json: bool) -> None:
    """List the roles with alias and place, and the problems of broken ones."""
    from taskweaver.cli.projects.inventory import found_roles

    found = found_roles(project)
    if as_json:
        print_json([asdict(item) for item in found])
        return
    for item in found:
        takes_part = "*" if item.takes_part else " "
        problem = f"  broken: {' '.join(item.problem.split())}" if item.problem else ""
        click.echo(safe(f"{takes_part} {item.name:20} {item.alias:20} {item.origin}{problem}"))
    click.echo("* takes part (session.roles)")


@role.command()
@click.argument("name")
@click.pass_obj
def new(project: Path | None, name: str) -> None:
    """Write a small role that works, to be changed.

    For example: taskweaver -p sales role new price_list
    """
    from taskweaver.app.app import TaskWeaverApp
    from taskweaver.app.errors import ProjectError
    from taskweaver.cli.projects.inventory import found_roles, role_folder
    from taskweaver.cli.projects.new_role import create_role

    path, is_project, _ = TaskWeaverApp.discover_app_dir(project)
    if not is_project:
        raise ProjectError(str(path), "is not a project; `taskweaver init` makes one.")
    found = found_roles(path)
    for line in create_role(role_folder(path), name, found):
        click.echo(line)
