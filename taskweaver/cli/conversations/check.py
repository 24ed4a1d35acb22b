"""``taskweaver check``: confirm a receipt without a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from taskweaver.cli.opening.projects import open_app
from taskweaver.cli.printing import colored, print_json, safe
from taskweaver.utils.app_utils import discover_app_dir
from taskweaver.utils.text import counted


def check_file(
    project: Path | None,
    file: Path,
    data: Mapping[str, Path],
    *,
    is_trusted: bool = False,
    as_json: bool = False,
) -> int:
    """Check a receipt, with other files as inputs by name, and return the exit status.

    Where there is no sandbox, its code runs only if `is_trusted`.

    Returns:
        0 when everything is as recorded, else 1.

    Raises:
        TaskWeaverError: If the project or the receipt cannot be used.
    """
    with _scratch(project) as config, open_app(project, config) as app:
        verdict = app.check_receipt(file, data=data, is_trusted=is_trusted)
    if as_json:
        facts = {"verdict": "same" if verdict.is_same else "different", **asdict(verdict)}
        print_json(facts, indent=None)
        return 0 if verdict.is_same else 1
    if verdict.difference is None:
        cells = counted(verdict.cells, "cell")
        click.echo(f"{colored('same', 'green')} ({cells} run again)")
    else:
        click.echo(colored(safe(str(verdict.difference)), "red"))
    for note in verdict.notes:
        click.echo(f"note: {safe(note)}")
    return 0 if verdict.is_same else 1


@contextmanager
def _scratch(project: Path | None) -> Iterator[dict[str, str]]:
    """Keep a folder that is no project free of a log and of working folders.

    Yields:
        Configuration that leads them to a temporary folder; empty for a project.
    """
    _, is_project, _ = discover_app_dir(project)
    if is_project:
        yield {}
        return
    with TemporaryDirectory(prefix="taskweaver-check-") as folder:
        keys = "workspace.workspace_path", "logging.log_folder", "execution_service.env_dir"
        yield dict.fromkeys(keys, folder)
