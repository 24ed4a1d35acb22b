"""The project folder that a command is told."""

from __future__ import annotations

from pathlib import Path

import click


def require_folder(project: Path | None) -> None:
    """Check that it is there; nothing is made in a folder whose name was mistyped.

    Raises:
        click.UsageError: If it is not.
    """
    if project is not None and not project.is_dir():
        raise click.UsageError(
            f"There is no folder {project}; `taskweaver init {project}` makes a project there."
        )
