"""``taskweaver replay`` and ``check``: cells run again without a model, and compared."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from taskweaver.cli.open_app import open_app
from taskweaver.cli.options import DATA, FILE, JSON, PATH, pairs, paths
from taskweaver.cli.printing import print_json, say, say_marked, tell
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
        tell(*app.warnings)
        for step in app.replay(experience, settings=values, data=files, repair=repair):
            steps.append(step)
            print_json(step, indent=None) if as_json else _show(step)
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
    """Run the cells of a receipt again without a model, and compare all records.

    RECEIPT is a file that /export receipt wrote. The exit status is 1 when something differs.
    """
    with open_app(project) as app:
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
