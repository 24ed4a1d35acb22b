"""``taskweaver eval``: play cases, print their table, compare it with an earlier run."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from taskweaver.cli.opening.folder import TRUST_CHOICE, require_folder
from taskweaver.cli.options import FILE, FOLDER, NEW_FILE


@click.command(name="eval")
@click.argument("cases", metavar="CASES")
@click.option(
    "-p",
    "--project",
    "own_project",
    metavar="DIR",
    type=FOLDER,
    help="Project folder whose model, plugins and prompts are tried.",
)
@click.option(
    "--jobs",
    metavar="N",
    default=1,
    show_default=True,
    type=click.IntRange(1, 256),
    help="Cases that are played at the same time.",
)
@click.option(
    "--out",
    metavar="FILE",
    type=NEW_FILE,
    help="Append a line of JSON for each case; cases that are there already are not repeated.",
)
@click.option(
    "--against",
    metavar="FILE",
    type=FILE,
    help="Compare with the results of an earlier run.",
)
@click.option("--only", metavar="NAME", multiple=True, help="Play this case; may be repeated.")
@click.option("--held-out", "is_held_out", is_flag=True, help="Play the held-out cases, too.")
@click.pass_context
def eval_command(  # noqa: PLR0913 - one for each option
    ctx: click.Context,
    /,
    *,
    cases: str,
    own_project: Path | None,
    jobs: int,
    out: Path | None,
    against: Path | None,
    only: tuple[str, ...],
    is_held_out: bool,
) -> None:
    """Play cases against the configured model, and print passes, calls, tokens and times.

    CASES is a file of cases, a folder of files, or `shipped` for the packaged ones. With
    LLM_API_TYPE=recorded their recorded replies answer, with LLM_API_TYPE=offline the built-in
    analyst does. The exit status is 1 when a case did not pass.
    """
    project: Path | None = own_project or ctx.obj
    require_folder(project)
    from taskweaver.cli.evaluation.eval_table import print_comparison, print_results, print_row
    from taskweaver.cli.opening.consent import consent_to
    from taskweaver.evaluation.evaluation import evaluate
    from taskweaver.evaluation.results import read_rows

    earlier = read_rows(against) if against else None
    done = evaluate(
        cases,
        project,
        trust=consent_to(project),
        is_trusted=ctx.meta.get(TRUST_CHOICE) is True,
        jobs=jobs,
        out=out,
        only=only,
        is_held_out=is_held_out,
        on_start=lambda line, count: click.echo(f"{line}\ncases to play: {count}", err=True),
        on_row=print_row,
    )
    print_results(done)
    if earlier is not None:
        print_comparison(done.rows, earlier)
    sys.exit(0 if done.is_passed else 1)
