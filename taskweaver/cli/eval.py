"""``taskweaver eval``: play cases, print their table, compare it with an earlier run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from taskweaver.cli.opening import consent_to
from taskweaver.cli.options import FILE, FOLDER, NEW_FILE, TRUST_CHOICE, require_folder
from taskweaver.cli.printing import print_table, say
from taskweaver.evaluation.evaluation import Evaluation, evaluate
from taskweaver.evaluation.results import ResultRow, read_rows, sums_of
from taskweaver.utils.text import counted, shorten

_HEAD = ("case", "kind", "answered by", "result", "calls", "prompt", "completion", "time")
_MOST_CHARS = 600
_PROOF = (
    "Recorded answers show that the program still works, with its calls and tokens;"
    " they prove nothing about prompts."
)
_MARKS = "* held out   j a judge decided, or a model played the user   ~ tokens are estimates"


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


def print_row(row: ResultRow) -> None:
    """Print the result of a case as soon as it is over, to standard error."""
    say(f"{row.outcome:8} {row.case} ({row.time_s:.1f} s)", err=True)


def print_results(done: Evaluation) -> None:
    """Print the table, its sums and means, and the problems."""
    rows, sums = done.rows, sums_of(done.rows)
    parts = {"sum": 1.0, "mean of a case": sums["cases"], "mean of a question": sums["questions"]}
    about = "~" if any(row.is_estimated for row in rows) else ""
    means = [_sum_cells(name, sums, part or 1.0, about) for name, part in parts.items()]
    print_table("", _HEAD, [*map(_cells, rows), *means])
    say(_MARKS)
    if any(row.by == "recording" for row in rows):
        say(_PROOF)
    skipped: dict[str, list[str]] = {}
    for row in rows:
        if row.outcome == "skipped":
            skipped.setdefault("; ".join(row.problems), []).append(row.case)
            continue
        for text in (*row.problems, *(f"note: {note}" for note in row.notes)):
            _say_line(f"{row.case}: {row.outcome}: {text}")
    for reason, names in skipped.items():
        _say_line(f"skipped, {reason}: {', '.join(names)}")
    for error in done.broken:
        _say_line(f"left out: {error}")
    outcomes = [row.outcome for row in rows]
    counts = {name: outcomes.count(name) for name in ("error", "timeout", "skipped")}
    counts["held out, and left out without --held-out"] = done.left_out
    counts["taken from the file"] = len(done.resumed)
    counts["files left out"] = len(done.broken)
    passed = f"{sums['passed']:g} of {counted(int(sums['cases']), 'played case')} passed"
    others = [f"{name}: {count}" for name, count in counts.items() if count]
    say("\n" + "; ".join([passed, *others]))


def print_comparison(rows: Sequence[ResultRow], earlier: Sequence[ResultRow]) -> None:
    """Print what changed since an earlier run."""
    now, before = {row.case: row for row in rows}, {row.case: row for row in earlier}
    both = [(before[name], now[name]) for name in now if name in before]
    by = sorted({old.by for old, _ in both})
    say(f"\nagainst the earlier run, answered by: {', '.join(by) or '-'}")
    if {new.by for _, new in both} - {*by}:
        say("Another one answers now: passes are not compared like with like.")
    for old, new in both:
        if old.outcome != new.outcome and "passed" in (old.outcome, new.outcome):
            _say_line(f"  {new.case}: {old.outcome} -> {new.outcome}")
        elif old.calls != new.calls:
            _say_line(f"  {new.case}: calls {old.calls} -> {new.calls}")
    _print_means([pair for pair in both if pair[0].is_scored and pair[1].is_scored])
    for label, names in (("new", now.keys() - before), ("gone", before.keys() - now)):
        if names:
            _say_line(f"{label}: {', '.join(sorted(names))}")


def _print_means(pairs: Sequence[tuple[ResultRow, ResultRow]]) -> None:
    """Print the means of two runs over the cases that both played."""
    say(f"mean of the {counted(len(pairs), 'case')} that both played:")
    before, now = (sums_of([pair[place] for pair in pairs]) for place in (0, 1))
    for name, unit in (
        ("passed", " %"), ("calls", ""), ("prompt_tokens", ""), ("completion_tokens", ""),
        ("time_s", " s"),
    ):  # fmt: skip
        digits = 0 if "tokens" in name else 2
        share = (100 if name == "passed" else 1) / (len(pairs) or 1)
        label = name.removesuffix("_s").replace("_", " ")
        one, two = before[name] * share, now[name] * share
        say(f"  {label}: {one:,.{digits}f}{unit} -> {two:,.{digits}f}{unit}")


def _cells(row: ResultRow) -> tuple[str, ...]:
    marks = ("*" if row.is_held_out else "") + (" j" if row.judge_calls else "")
    by = row.by if row.by != "live" else f"live: {row.model}"
    outcome: str = row.outcome
    if outcome == "failed" and row.score:
        outcome += f" {row.score:.0%}"
    about = "~" if row.is_estimated else ""
    costs: Sequence[str] = ("-", "-", "-", "-")
    if outcome != "skipped":
        tokens = [f"{about}{count:,}" for count in (row.prompt_tokens, row.completion_tokens)]
        costs = (str(row.calls), *tokens, f"{row.time_s:.1f} s")
    return (row.case + marks, row.kind, by, outcome, *costs)


def _sum_cells(name: str, sums: dict[str, float], parts: float, about: str) -> tuple[str, ...]:
    passed = f"{sums['passed']:g} of {sums['cases']:g}" if name == "sum" else ""
    calls = f"{sums['calls'] / parts:,.{0 if name == 'sum' else 1}f}"
    tokens = [
        f"{about}{sums[kind] / parts:,.0f}" for kind in ("prompt_tokens", "completion_tokens")
    ]
    return (name, "", "", passed, calls, *tokens, f"{sums['time_s'] / parts:.1f} s")


def _say_line(text: str) -> None:
    """Print a text of others on one line; the indent stays."""
    indent = text[: len(text) - len(text.lstrip())]
    say(indent + " ".join(shorten(text, _MOST_CHARS).split()))
