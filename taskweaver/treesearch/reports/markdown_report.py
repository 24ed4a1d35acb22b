"""The report of a run, in Markdown, written from its nodes alone: no model is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from taskweaver.treesearch.execution.results import Evaluator
from taskweaver.treesearch.model.artifacts import changes
from taskweaver.treesearch.model.idea import parse_idea
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.treesearch.model.samples import Difference
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.run_statistics import RunFacts, Use, gained
from taskweaver.treesearch.reports.best_node import (
    SHELL_SCRIPT,
    evaluator_of,
    idea_text,
    reproduction,
)
from taskweaver.treesearch.reports.figures import worth_of_parts, write_figures
from taskweaver.treesearch.reports.run_data import costs, gain_over
from taskweaver.utils.files import write_text
from taskweaver.utils.markup.inert_markdown import inert_line
from taskweaver.utils.redact import redact_secrets
from taskweaver.utils.text import counted, duration_text, fenced, shorten

MOST_ROWS = 40
MOST_STEPS = 12
PLAN_CHARS = 1_500
DIFF_CHARS = 4_000
IDEA_CHARS = 4_000
_COMPARED = frozenset({NodeKind.IMPROVE, NodeKind.HYPERPARAM})


def inline(text: object, limit_chars: int = 200) -> str:
    """Return text for the inside of a line: nothing in it is markup, a link or a line's end."""
    line = " ".join(str(text).split())
    short = line if len(line) <= limit_chars else f"{line[: limit_chars - 1].rstrip()}…"
    return inert_line(short)


def block(text: str, limit_chars: int, language: str = "text") -> str:
    """Return text as a block that is shown as it is, its middle left out when it is long."""
    return fenced(shorten(text, limit_chars), language)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already. Columns of numbers end with ``:``."""
    names = [name.rstrip(":") for name in header]
    rule = ["---:" if name.endswith(":") else "---" for name in header]
    lines = [names, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_report(journal: Journal, run_dir: Path, facts: RunFacts) -> Path:
    """Write ``report.md`` and the figures it shows.

    Raises:
        OSError: If one of them cannot be written.
    """
    figures = write_figures(journal, run_dir, facts)
    target = run_dir / "report.md"
    idea, evaluator = idea_text(run_dir), evaluator_of(run_dir)
    report = build_report(journal, facts, idea=idea, figures=figures, evaluator=evaluator)
    write_text(target, report)
    return target


def build_report(
    journal: Journal,
    facts: RunFacts,
    *,
    idea: str = "",
    figures: Mapping[str, str] | None = None,
    evaluator: Evaluator | None = None,
) -> str:
    """Return the report, with the idea as it was given, and how its evaluator measures again.

    `figures` are titles, by path relative to the report.
    """
    title = inline(facts.title or facts.name)
    parts = [
        f"# {title}",
        _outcome(journal, facts, figures or {}),
        _asked(journal, idea),
        _path(journal),
        _without_gain(journal, facts),
        _failures(journal),
        _ablations(journal, facts, figures or {}),
        _costs(journal, facts),
        _reproduce(journal, evaluator),
    ]
    # Shown to others: what programs printed and models wrote may hold a key.
    return redact_secrets("\n\n".join(part for part in parts if part)) + "\n"


def _asked(journal: Journal, idea: str) -> str:
    objective = journal.objective
    aim = "as high as possible" if objective.maximize else "as low as possible"
    unit = f", in {inline(objective.unit)}" if objective.unit else ""
    said = [f"## What was asked\n\nAim: {inline(objective.name)}{unit}, {aim}."]
    evaluation = parse_idea(idea).evaluation
    said.append(
        f"Measured by the run's own evaluator, {inline(evaluation)}."
        if evaluation
        else "Attempts measured themselves: each wrote its metric to working/result.json."
    )
    if idea.strip():
        said.append(block(idea.strip(), IDEA_CHARS, "markdown"))
    return "\n\n".join(said)


def _outcome(journal: Journal, facts: RunFacts, figures: Mapping[str, str]) -> str:
    best = journal.best()
    rows = [("run", inline(facts.name)), *_times(facts)]
    statuses, _ = run_statistics.count(journal.nodes)
    parts = ", ".join(f"{number:,} {status}" for status, number in statuses.items())
    rows.append(("nodes", f"{len(journal):,}" + (f" ({parts})" if parts else "")))
    if best is None:
        said = "No node measured anything, so there is no best one."
        return f"## What came out\n\n{said}\n\n{table(('', ''), rows)}{_stages(journal, facts)}"
    if best.branch not in {"", best.id}:
        rows.append(("branch of its memory", inline(best.branch)))
    rows = [*_gains(journal, best), *rows]
    reached, sure = run_statistics.reached(journal, best), run_statistics.certainty(journal)
    said = f"**{inline(reached)}**, by node {inline(best.id)}. {inline(sure, 800)}"
    confirmed = inline(run_statistics.confirmation(journal), 800)
    head = f"## What came out\n\n**{confirmed}**\n\n{said} {_cost_sentence(journal, facts)}"
    judged = "".join(f"\n\n{inline(said, 800)}" for said in run_statistics.overruled(journal))
    shown = table(("", ""), rows) + _pictures(figures, "best", "values")
    return f"{head}{judged}\n\n{shown}{_stages(journal, facts)}"


def _cost_sentence(journal: Journal, facts: RunFacts) -> str:
    total = costs(journal, facts.beside)["total"]
    tokens, money = total["prompt_tokens"] + total["completion_tokens"], total["money"]
    parts = [
        counted(len(journal), "node"),
        duration_text(facts.budgets.seconds.used),
        f"{counted(total['calls'], 'call')} of the model" if tokens else "",
        f"{tokens:,} tokens" if tokens else "",
        f"{money:,.4g} in money" if money else "",
    ]
    return f"It cost {', '.join(filter(None, parts))}."


def _gains(journal: Journal, best: Node) -> list[tuple[str, str]]:
    rows = []
    base, found = journal.baseline, journal.found
    if base is not None and found is not None and found is not base:
        better = inline(gain_over(journal, found, base))
        was = inline(f"from {run_statistics.reached(journal, base)}, node {base.id}")
        told = "the first draft that works; optimistic, since these figures chose the node"
        rows.append(("gain over the baseline", f"{better}, {was}, {told}"))
    spread = journal.repeated_samples(best.id)
    if spread is not None:
        failed = f", {spread.failed} failed" if spread.failed else ""
        rows.append(("other seeds", inline(spread.text(journal.objective)) + failed))
    values = best.metric.values if best.metric else {}
    if len(values) > 1:
        each = (f"{name}: {journal.objective.text(value)}" for name, value in values.items())
        rows.append(("per data set", inline(", ".join(each), 600)))
    return rows


def _times(facts: RunFacts) -> list[tuple[str, str]]:
    started = datetime.fromtimestamp(facts.started_at, UTC)
    rows = [("started", f"{started:%Y-%m-%d %H:%M} UTC")]
    if facts.finished_at is not None:
        finished = datetime.fromtimestamp(facts.finished_at, UTC)
        rows.append(("finished", f"{finished:%Y-%m-%d %H:%M} UTC"))
    if facts.reason:
        rows.append(("ended because", inline(facts.reason)))
    return rows


def _stages(journal: Journal, facts: RunFacts) -> str:
    if not facts.stages:
        return ""
    rows = [
        (
            str(stage.number),
            inline(stage.name.replace("_", " ")),
            str(len(journal.of_stage(stage.number))),
            _named(journal, stage.base),
            _named(journal, stage.best),
            inline(stage.reason) or "goes on",
        )
        for stage in facts.stages
    ]
    header = ("stage", "name", "nodes:", "began with", "best", "ended because")
    return f"\n\n### Stages\n\n{table(header, rows)}"


def _named(journal: Journal, node_id: str | None) -> str:
    if node_id is None or node_id not in journal:
        return "-"
    return inline(f"{node_id}, {run_statistics.reached(journal, journal[node_id])}")


def _path(journal: Journal) -> str:
    best = journal.best()
    if best is None:
        return ""
    path = journal.path(best.id)
    rows = [
        (inline(n.id), n.kind.value, _value(journal, n), _gain_of(journal, n), _what(n))
        for n in path
    ]
    body = _bounded(("node", "kind", "value:", "gain:", "plan"), rows, "steps")
    last = path[max(1, len(path) - MOST_STEPS + 1) :]
    details = [_detail(journal, node) for node in (path[0], *last)]
    note = "" if len(details) == len(path) else f" The first and the last {len(last)} follow."
    return "\n\n".join(
        [f"## From draft to best\n\n{counted(len(path), 'step')}.{note}\n\n{body}", *details]
    )


def _gain_of(journal: Journal, node: Node) -> str:
    return inline(gain_over(journal, node, run_statistics.measured_ancestor(journal, node)))


def _detail(journal: Journal, node: Node) -> str:
    facts = [node.kind.value, _value(journal, node)]
    if gain := _gain_of(journal, node):
        facts.append(f"gain {gain}")
    parts = [f"### {inline(node.id)}: {', '.join(facts)}"]
    if node.plan.strip():
        parts.append(block(node.plan.strip(), PLAN_CHARS))
    if node.error is not None:
        parts.append(f"It failed: {inline(node.error.kind)}: {inline(node.error.gist, 400)}")
    before, files = journal.files(node.parent or ""), journal.files(node.id)
    if node.parent and (changed := changes(before, files, DIFF_CHARS)):
        parts.append(block(changed, DIFF_CHARS * 2, "diff"))
    elif files and not node.parent:
        lines = (f"{path} ({len(text.splitlines()):,} lines)" for path, text in files.items())
        parts.append(f"Files: {inline(', '.join(lines), 600)}")
    return "\n\n".join(parts)


def _without_gain(journal: Journal, facts: RunFacts) -> str:
    best = journal.best()
    path = journal.path(best.id) if best else []
    tried = [node for node in journal.good if node.kind in _COMPARED and node not in path]
    rows = [
        (*_effect_row(journal, effect.node, effect.base, effect.difference), _what(effect.node))
        for effect in run_statistics.effects(journal, facts, tried)
        if effect.difference and not (effect.difference.gain > 0 and effect.difference.is_clear)
    ]
    if not rows:
        return ""
    header = ("node", "kind", "value:", "effect:", "compared with", "what")
    return f"## Tried without gain\n\n{_bounded(header, rows, 'nodes')}"


def _effect_row(
    journal: Journal, node: Node, base: Node | None, found: Difference | None
) -> tuple[str, ...]:
    effect, against = inline(gained(journal, found, base)), inline(base.id) if base else "-"
    return inline(node.id), node.kind.value, _value(journal, node), effect, against


def _failures(journal: Journal) -> str:
    found = run_statistics.failures(journal)
    if not found:
        return ""
    rows = [
        (
            inline(kind),
            str(len(nodes)),
            str(repaired),
            inline(nodes[-1].id),
            inline(error.gist if (error := nodes[-1].error) else "-"),
        )
        for kind, nodes, repaired in found
    ]
    header = ("kind", "nodes:", "repaired:", "latest", "message")
    return f"## Failures\n\n{_bounded(header, rows, 'kinds')}"


def _ablations(journal: Journal, facts: RunFacts, figures: Mapping[str, str]) -> str:
    rows = []
    for effect in worth_of_parts(journal, facts):
        found = effect.difference
        worth = replace(found, gain=-found.gain) if found else None  # what is lost without it
        node, _, *row = _effect_row(journal, effect.node, effect.base, worth)
        rows.append((inline(effect.node.name) or node, *row, node))
    if not rows:
        return ""
    said = "Worth is what is lost without the part; below zero, the rest is better without it."
    body = _bounded(("part", "value without:", "worth:", "taken from", "node"), rows, "parts")
    return f"## Ablations\n\n{said}\n\n{body}{_pictures(figures, 'ablations')}"


def _costs(journal: Journal, facts: RunFacts) -> str:
    account = costs(journal, facts.beside)
    header = ("stage", "kind", "nodes:", "calls:", "tokens in:", "tokens out:", "money:", "time:")
    rows = [
        _cost_row(str(stage), kind, entry)
        for stage, of_stage in account["by_stage"].items()
        for kind, entry in of_stage["by_kind"].items()
    ]
    if facts.beside.calls:
        none = {"nodes": 0, "seconds": 0.0}
        rows.append(_cost_row("beside nodes", "", account["beside_nodes"] | none))
    rows.append(_cost_row("**all**", "", account["total"]))
    used = ", ".join(_uses(facts))
    said = f"Used of the budget: {used}.\n\n" if used else ""
    return f"## Costs\n\n{said}{table(header, rows)}"


def _cost_row(stage: str, kind: str, entry: Mapping[str, float | None]) -> tuple[str, ...]:
    keys = ("nodes", "calls", "prompt_tokens", "completion_tokens")
    money = entry["money"]
    numbers = [f"{entry[key]:,}" for key in keys]
    paid = "-" if money is None else f"{money:,.4g}"
    return stage, kind, *numbers, paid, duration_text(entry["seconds"] or 0.0)


def _uses(facts: RunFacts) -> list[str]:
    budgets = facts.budgets
    uses = {
        "nodes": budgets.nodes,
        "seconds": budgets.seconds,
        "tokens": budgets.tokens,
        "money": budgets.money or Use(),
    }
    return [
        f"{name} {round(use.used, 2):,.10g}" + (f" of {use.limit:,.10g}" if use.limit else "")
        for name, use in uses.items()
        if use.used or use.limit
    ]


def _reproduce(journal: Journal, evaluator: Evaluator | None) -> str:
    best = journal.best()
    if best is None:
        return ""
    text = reproduction(journal, best, evaluator)[SHELL_SCRIPT]
    said = (
        f"`best/{SHELL_SCRIPT}` runs the best node again, from its files in `best/workspace`"
        " (those that were left out of them, `best/node.json` names), outside of any sandbox: read"
        " it first. It is:"
    )
    return f"## How to reproduce\n\n{said}\n\n{block(text, 8_000, 'sh')}"


def _bounded(header: Sequence[str], rows: Sequence[Sequence[str]], noun: str) -> str:
    """Return a table of at most `MOST_ROWS` rows: the first half and the last."""
    if len(rows) <= MOST_ROWS:
        return table(header, rows)
    half = MOST_ROWS // 2
    gap = [f"{len(rows) - 2 * half:,} more {noun}", *[""] * (len(header) - 1)]
    return table(header, [*rows[:half], gap, *rows[-half:]])


def _value(journal: Journal, node: Node) -> str:
    if not node.is_good:
        return node.status.value
    return inline(run_statistics.reached(journal, node))


def _what(node: Node) -> str:
    again = f"the program of {node.same_as} again; " if node.same_as else ""
    return inline(f"{again}{node.name}: {node.plan}" if node.name else again + node.plan, 140)


def _pictures(figures: Mapping[str, str], *names: str) -> str:
    shown = [f"![{title}]({path})" for path, title in figures.items() if Path(path).stem in names]
    return "".join(f"\n\n{picture}" for picture in shown)
