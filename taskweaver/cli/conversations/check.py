"""``taskweaver check``: confirm a receipt without a model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from taskweaver.cli.opening.projects import open_app
from taskweaver.cli.options import DATA, JSON, PATH, paths
from taskweaver.cli.printing import print_json, say, say_marked
from taskweaver.utils.app_utils import discover_app_dir
from taskweaver.utils.text import counted


@click.command("check")
@click.argument("receipt", type=PATH)
@DATA
@click.option(
    "--trust", "is_trusted", is_flag=True, help="Run its code also where there is no sandbox."
)
@JSON
@click.pass_obj
def check_command(
    project: Path | None, *, receipt: Path, data: tuple[str, ...], is_trusted: bool, as_json: bool
) -> None:
    """Run the cells of a receipt again without a model, and compare all that it records.

    RECEIPT is a file that /export receipt wrote. The exit status is 1 when something differs.
    """
    with _scratch(project) as config, open_app(project, config) as app:
        verdict = app.check_receipt(receipt, data=paths(data), is_trusted=is_trusted)
    if as_json:
        facts = {"verdict": "same" if verdict.is_same else "different", **asdict(verdict)}
        print_json(facts, indent=None)
    else:
        if verdict.difference is None:
            say_marked("same", "green", f"({counted(verdict.cells, 'cell')} run again)")
        else:
            say(str(verdict.difference), "red")
        for note in verdict.notes:
            say(f"note: {note}")
    sys.exit(0 if verdict.is_same else 1)


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
