"""``taskweaver init`` and ``role new``: a project folder, and a role in a project."""

from __future__ import annotations

import json
import keyword
import re
import shutil
from pathlib import Path

import click

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.errors import ProjectError
from taskweaver.app.modules import ROLE_FOLDERS
from taskweaver.cli.opening import read_source
from taskweaver.cli.options import FOLDER
from taskweaver.role.errors import RoleError
from taskweaver.role.registry.registry import RoleRegistry
from taskweaver.utils.files import write_text
from taskweaver.utils.system.installation import own_command
from taskweaver.utils.text import fill

TEMPLATE = Path(__file__).with_name("template")
_ROLE_TEMPLATE = Path(__file__).with_name("role_template")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@click.command("init")
@click.argument("folder", required=False, type=FOLDER)
@click.option("-p", "--project", "same", metavar="DIR", type=FOLDER, help="The same as FOLDER.")
@click.pass_obj
def init_command(project: Path | None, folder: Path | None, same: Path | None) -> None:
    """Make a project folder: configuration, examples, sample data."""
    target = folder or same or project
    if target is None:
        raise click.UsageError("Which folder? For example: taskweaver init sales")
    for line in create_project(target):
        click.echo(line)


def create_project(folder: Path) -> list[str]:
    """Make a project in a new or empty folder: configuration, README, examples, sample data.

    Returns:
        Lines for the user: the files made, and the next steps.

    Raises:
        ProjectError: If the folder is not empty, or cannot be written.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ProjectError(str(folder), "is not empty; name a folder that is new or empty.")
        _copy_template(folder)
    except OSError as error:
        problem = f"a project cannot be made there: {error.strerror or error}"
        raise ProjectError(str(folder), problem) from error
    return [
        f"{folder} is a project now, with 400 rows to ask about in data/orders.csv.",
        f"Try: {own_command('-m', 'describe orders.csv', project=folder)}",
        f"Chat: {own_command(project=folder)}",
    ]


def _copy_template(folder: Path) -> None:
    """Copy the packaged files without modes, which an installer may have made read-only."""
    for name in ("plugins", "roles"):
        (folder / name).mkdir(parents=True)
    for source in TEMPLATE.rglob("*.*"):
        hidden = {"gitignore.txt": ".gitignore"}.get(source.name, source.name)
        target = folder / source.relative_to(TEMPLATE).with_name(hidden)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


@click.group("role")
def role_command() -> None:
    """Make a role of your own. `taskweaver doctor` lists all roles."""


@role_command.command()
@click.argument("name")
@click.pass_obj
def new(project: Path | None, name: str) -> None:
    """Write a small role that works, to be changed.

    For example: taskweaver -p sales role new price_list
    """
    path, is_project, _ = TaskWeaverApp.discover_app_dir(project)
    if not is_project:
        raise ProjectError(str(path), "is not a project; `taskweaver init` makes one.")
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise RoleError(name, "a name is small letters, digits and _, such as price_list.")
    src = read_source(path, has_code=False)
    folder = Path(src.get_path("role.base_path"))
    registry = RoleRegistry([*ROLE_FOLDERS, folder])
    present = [registry.get(known) for known in registry.get_role_name_list()]
    alias = "".join(part.capitalize() for part in name.split("_"))
    target = folder / name
    taken = {word for entry in present for word in (entry.name, entry.alias)}
    if {name, alias} & taken or target.exists():
        raise RoleError(name, "there is a role of that name; choose another.")
    for source in sorted(_ROLE_TEMPLATE.glob("*.txt")):
        text = fill(source.read_text("utf-8"), NAME=name, ALIAS=alias)
        write_text(target / f"{name}.{source.stem}", text)
    takes_part = [known for known in src.get_list("session.roles") if known != name]
    takes_part.sort(key="planner".__ne__)  # the Planner leads, so it is named first
    key = json.dumps({"session.roles": [*takes_part, name]})
    click.echo(
        f"{target} has a role that works: {name}.role.yaml says what it is for, {name}.py does it."
    )
    click.echo(f"To let it take part, set in taskweaver_config.json: {key[1:-1]}")
