"""``taskweaver replay``: run a saved conversation again, without a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from taskweaver.cli.opening.projects import open_app
from taskweaver.cli.printing import colored, print_json, safe
from taskweaver.session.replay import ReplayedCell
from taskweaver.utils.text import counted

_COLORS = {"same": "green", "differs": "yellow", "repaired": "yellow", "failed": "red"}


def replay_file(
    project: Path | None,
    file: Path,
    settings: Mapping[str, str],
    data: Mapping[str, Path],
    *,
    repair: bool = False,
    as_json: bool = False,
) -> int:
    """Run an experience of `/save` again, show each step, and return the exit status.

    `settings` are Python expressions by variable, `data` other files by the name of those they
    replace; with `repair` the model corrects a cell that fails.

    Returns:
        0 when every result is as recorded, else 1.

    Raises:
        TaskWeaverError: If the project or the experience cannot be used.
    """
    steps = []
    with open_app(project) as app:
        for warning in app.warnings:
            click.echo(f"warning: {safe(warning)}", err=True)
        for step in app.replay(file, settings=settings, data=data, repair=repair):
            steps.append(step)
            print_json(asdict(step), indent=None) if as_json else _show(step)
    counts = {verdict: sum(step.verdict == verdict for step in steps) for verdict in _COLORS}
    if not as_json:
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        click.echo(f"{counted(len(steps), 'cell')}: {said}")
    return 0 if counts["same"] == len(steps) else 1


def _show(step: ReplayedCell) -> None:
    verdict = colored(f"{step.verdict:8}", _COLORS[step.verdict])
    first, *rest = step.code.strip().splitlines() or [""]
    click.echo(f"{verdict} {step.number}. {safe(first)}{' ...' if rest else ''}")
    for line in step.details:
        click.echo(f"{'':9}{safe(line)}")
