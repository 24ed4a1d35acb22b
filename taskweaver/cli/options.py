"""Parts of options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from taskweaver.utils.system.installation import own_command

FILE = click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, resolve_path=True, path_type=Path)
FOLDER = click.Path(file_okay=False, resolve_path=True, path_type=Path)
PATH = click.Path(resolve_path=True, path_type=Path)
DATA = click.option(
    "--data", multiple=True, metavar="NAME=PATH", help="Use the file PATH in place of NAME."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

TRUST_CHOICE = "taskweaver.trust"
"""Name under which commands share the option ``--trust`` or ``--no-trust``."""


def require_folder(project: Path | None) -> None:
    """Check that a project folder exists: a mistyped name makes no folder.

    Raises:
        click.UsageError: If it is not.
    """
    if project is not None and not project.is_dir():
        raise click.UsageError(
            f"There is no folder {project}; `{own_command('init', project)}` makes a project there."
        )


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """Read options of the form ``name=value``.

    Raises:
        click.UsageError: If one has another form.
    """
    found = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise click.UsageError(f"{text!r} must be like name=value.")
        found[name] = value
    return found


def paths(texts: Iterable[str]) -> dict[str, Path]:
    """Read options of the form ``name=path``, as `pairs` does."""
    return {name: Path(value) for name, value in pairs(texts).items()}
