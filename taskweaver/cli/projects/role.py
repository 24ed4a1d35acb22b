"""``taskweaver role``: the roles of a project, and making one."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click


@click.group()
@click.pass_obj
def role(project: Path | None) -> None:
    """List the roles that can take part, or make one."""
    if project is not None and not project.is_dir():
        raise click.UsageError(f"There is no folder {project}.")


@role.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_roles(project: Path | None, *, as_json: bool) -> None:
    """List the roles with alias and place, and the problems of broken ones."""
    from taskweaver.cli.projects.inventory import found_roles
    from taskweaver.console.terminal.text import safe, safe_json

    found = found_roles(project)
    if as_json:
        click.echo(safe_json(json.dumps([asdict(item) for item in found], indent=2)))
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
