"""``taskweaver eval``: play cases, print the results, compare with an earlier run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from taskweaver.cli.opening import consent_to
from taskweaver.cli.options import FILE, NEW_FILE, TRUST_CHOICE
from taskweaver.cli.printing import print_table, say
from taskweaver.evaluation.evaluation import Evaluation, evaluate
from taskweaver.evaluation.results import ResultRow, read_rows, sums_of
from taskweaver.utils.text import counted, shorten_words

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
    project: Path | None = ctx.obj
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
        on_row=lambda row: say(f"{row.outcome:8} {row.case} ({row.time_s:.1f} s)", err=True),
    )
    _print_results(done)
    if earlier is not None:
        _print_comparison(done.rows, earlier)
    sys.exit(0 if done.is_passed else 1)


def _print_results(done: Evaluation) -> None:
    """Print the table with sums and means, and the problems."""
    rows, sums = done.rows, sums_of(done.rows)
    about = "~" if any(row.is_estimated for row in rows) else ""
    passed = f"{sums['passed']:g} of {sums['cases']:g}"
    means = [
        ("sum", "", "", passed, *_costs(sums, 1, about)),
        ("mean of a case", "", "", "", *_costs(sums, sums["cases"], about)),
        ("mean of a question", "", "", "", *_costs(sums, sums["questions"], about)),
    ]
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


def _print_comparison(rows: Sequence[ResultRow], earlier: Sequence[ResultRow]) -> None:
    """Print what changed since an earlier run, with means over the cases that both played."""
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
    for label, names in (("new", now.keys() - before), ("gone", before.keys() - now)):
        if names:
            _say_line(f"{label}: {', '.join(sorted(names))}")
    played = [pair for pair in both if pair[0].is_scored and pair[1].is_scored]
    means = []
    for label, part in zip(("before", "now"), zip(*played, strict=True), strict=False):
        sums = sums_of(part)
        share = f"{sums['passed'] / sums['cases']:.0%}"
        means.append((label, share, *_costs(sums, sums["cases"], "")))
    title = f"mean of the {counted(len(played), 'case')} that both played"
    print_table(title, ("", "passed", *_HEAD[4:]), means)


def _cells(row: ResultRow) -> tuple[str, ...]:
    marks = ("*" if row.is_held_out else "") + (" j" if row.judge_calls else "")
    by = row.by if row.by != "live" else f"live: {row.model}"
    share = f" {row.score:.0%}" if row.outcome == "failed" and row.score else ""
    costs = _costs(row.model_dump(), 1, "~" if row.is_estimated else "")
    if row.outcome == "skipped":
        costs = ("-",) * 4
    return (row.case + marks, row.kind, by, row.outcome + share, *costs)


def _costs(of: Mapping[str, Any], parts: float, about: str) -> tuple[str, ...]:
    """Return calls, tokens and time, or their means over some parts, as cells of a table."""
    calls, read, written, time_s = (
        of[name] / (parts or 1)
        for name in ("calls", "prompt_tokens", "completion_tokens", "time_s")
    )
    shown = f"{calls:,.{0 if parts == 1 else 1}f}"
    return shown, f"{about}{read:,.0f}", f"{about}{written:,.0f}", f"{time_s:.1f} s"


def _say_line(text: str) -> None:
    """Print foreign text on one line, with its indent."""
    indent = text[: len(text) - len(text.lstrip())]
    say(indent + shorten_words(text, _MOST_CHARS))
