"""``taskweaver replay``: run a saved conversation again, without a model."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from taskweaver.cli.opening.projects import open_app
from taskweaver.cli.options import DATA, FILE, JSON, pairs, paths
from taskweaver.cli.printing import print_json, say, say_marked
from taskweaver.session.replay import ReplayedCell
from taskweaver.utils.text import counted

_COLORS = {"same": "green", "differs": "yellow", "repaired": "yellow", "failed": "red"}


@click.command("replay")
@click.argument("experience", type=FILE)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Another value.")
@DATA
@click.option("--repair", is_flag=True, help="Let the model correct a cell that fails.")
@JSON
@click.pass_obj
def replay_command(
    project: Path | None,
    *,
    experience: Path,
    settings: tuple[str, ...],
    data: tuple[str, ...],
    repair: bool,
    as_json: bool,
) -> None:
    """Run a saved conversation again without a model, and compare the results.

    EXPERIENCE is a file that /save wrote. The exit status is 1 when a result is not as recorded.
    """
    values, files = pairs(settings), paths(data)
    steps = []
    with open_app(project) as app:
        for warning in app.warnings:
            say(f"warning: {warning}", err=True)
        for step in app.replay(experience, settings=values, data=files, repair=repair):
            steps.append(step)
            print_json(asdict(step), indent=None) if as_json else _show(step)
    counts = {verdict: sum(step.verdict == verdict for step in steps) for verdict in _COLORS}
    if not as_json:
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        click.echo(f"{counted(len(steps), 'cell')}: {said}")
    sys.exit(0 if counts["same"] == len(steps) else 1)


def _show(step: ReplayedCell) -> None:
    first, *rest = step.code.strip().splitlines() or [""]
    text = f"{step.number}. {first}{' ...' if rest else ''}"
    say_marked(f"{step.verdict:8}", _COLORS[step.verdict], text)
    for line in step.details:
        say(f"{'':9}{line}")
