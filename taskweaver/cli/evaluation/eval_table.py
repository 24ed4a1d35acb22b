"""The table of an evaluation as text, its problems, and its comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from taskweaver.cli.printing import safe
from taskweaver.evaluation.evaluation import Evaluation
from taskweaver.evaluation.results.row import ResultRow
from taskweaver.evaluation.results.summary import CaseChange, ResultSums, RunComparison, sums_of
from taskweaver.utils.text import counted, shorten

_HEAD = ("case", "kind", "answered by", "result", "calls", "prompt", "completion", "time")
_LEFT = 4
"""Number of columns, from the first, that hold words."""
_MOST_CHARS = 600
_PROOF = (
    "Recorded answers show that the program still works, with its calls and tokens;"
    " they prove nothing about prompts."
)
_MARKS = "* held out   j a judge decided, or a model played the user   ~ tokens are estimates"


def print_row(row: ResultRow) -> None:
    """Print the result of a case as soon as it is over, to standard error."""
    click.echo(f"{row.outcome:8} {safe(row.case)} ({row.time_s:.1f} s)", err=True)


def print_results(done: Evaluation) -> None:
    """Print the table, its sums and means, and the problems."""
    sums = sums_of(done.rows)
    table = [_HEAD, *map(_cells, done.rows)]
    table += [
        _sum_cells("sum", sums, 1),
        _sum_cells("mean of a case", sums, sums.cases or 1),
        _sum_cells("mean of a question", sums, sums.questions or 1),
    ]
    for line in _aligned(table):
        click.echo(line)
    click.echo(f"\n{_MARKS}")
    if any(row.by == "recording" for row in done.rows):
        click.echo(_PROOF)
    for row in done.rows:
        if row.outcome == "skipped":
            continue
        for text in (*row.problems, *(f"note: {note}" for note in row.notes)):
            click.echo(_line(f"{row.case}: {row.outcome}: {text}"))
    for reason, names in _skipped(done.rows).items():
        click.echo(_line(f"skipped, {reason}: {', '.join(names)}"))
    for error in done.broken:
        click.echo(_line(f"left out: {error}"))
    click.echo("\n" + _conclusion(done, sums))


def print_comparison(comparison: RunComparison) -> None:
    """Print what changed since an earlier run."""
    changes = comparison.changes
    click.echo(f"\nagainst the earlier run, answered by: {', '.join(comparison.before_by) or '-'}")
    if {change.now.by for change in changes.values()} - set(comparison.before_by):
        click.echo("Another one answers now: passes are not compared like with like.")
    for name, change in changes.items():
        words = _change(change)
        if words:
            click.echo("  " + _line(f"{name}: {words}"))
    before, now = comparison.before, comparison.now
    click.echo(f"mean of the {counted(now.cases, 'case')} that both played:")
    for label, one, two in (
        ("passed", before.mean(before.passed) * 100, now.mean(now.passed) * 100),
        ("calls", before.mean(before.calls), now.mean(now.calls)),
        ("prompt tokens", before.mean(before.prompt_tokens), now.mean(now.prompt_tokens)),
        (
            "completion tokens",
            before.mean(before.completion_tokens),
            now.mean(now.completion_tokens),
        ),
        ("time", before.mean(before.time_s), now.mean(now.time_s)),
    ):
        unit = {"passed": " %", "time": " s"}.get(label, "")
        digits = 0 if "tokens" in label else 2
        click.echo(f"  {label}: {one:,.{digits}f}{unit} -> {two:,.{digits}f}{unit}")
    for label, names in (("new", comparison.only_now), ("gone", comparison.only_before)):
        if names:
            click.echo(_line(f"{label}: {', '.join(names)}"))


def _cells(row: ResultRow) -> tuple[str, ...]:
    marks = ("*" if row.is_held_out else "") + (" j" if row.judge_calls else "")
    is_partial = row.outcome == "failed" and 0 < row.score < 1
    outcome = f"{row.outcome} {row.score:.0%}" if is_partial else row.outcome
    by = row.by if row.by != "live" else f"live: {row.model}"
    if row.outcome == "skipped":
        return (row.case + marks, row.kind, by, outcome, "-", "-", "-", "-")
    about = "~" if row.is_estimated else ""
    return (
        row.case + marks,
        row.kind,
        by,
        outcome,
        str(row.calls),
        f"{about}{row.prompt_tokens:,}",
        f"{about}{row.completion_tokens:,}",
        f"{row.time_s:.1f} s",
    )


def _sum_cells(name: str, sums: ResultSums, parts: int) -> tuple[str, ...]:
    about = "~" if sums.is_estimated else ""
    is_sum = name == "sum"
    digits = 0 if is_sum else 1
    passed = f"{sums.passed} of {sums.cases}" if is_sum else ""
    return (
        name,
        "",
        "",
        passed,
        f"{sums.calls / parts:,.{digits}f}",
        f"{about}{sums.prompt_tokens / parts:,.0f}",
        f"{about}{sums.completion_tokens / parts:,.0f}",
        f"{sums.time_s / parts:.1f} s",
    )


def _aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    rows = [[safe(cell) for cell in row] for row in table]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    for row in rows:
        cells = [
            cell.ljust(width) if at < _LEFT else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _skipped(rows: Sequence[ResultRow]) -> dict[str, list[str]]:
    """Return the names of skipped cases, by the reason."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.outcome == "skipped":
            found.setdefault("; ".join(row.problems), []).append(row.case)
    return found


def _conclusion(done: Evaluation, sums: ResultSums) -> str:
    parts = [f"{sums.passed} of {counted(sums.cases, 'played case')} passed"]
    for outcome in ("error", "timeout", "skipped"):
        count = sum(row.outcome == outcome for row in done.rows)
        parts += [f"{outcome}: {count}"] if count else []
    if done.left_out:
        parts.append(f"held out: {done.left_out} (--held-out plays them, too)")
    if done.resumed:
        parts.append(f"taken from the file: {len(done.resumed)}")
    if done.broken:
        parts.append(f"files left out: {len(done.broken)}")
    return "; ".join(parts)


def _change(change: CaseChange) -> str:
    """Return the difference of a case in words; empty for none worth a line."""
    before, now = change.before, change.now
    if change.is_fixed or change.is_broken:
        return f"{before.outcome} -> {now.outcome}"
    if before.calls != now.calls:
        return f"calls {before.calls} -> {now.calls}"
    return ""


def _line(text: str) -> str:
    return safe(" ".join(shorten(text, _MOST_CHARS).split()))
