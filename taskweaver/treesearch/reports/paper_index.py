"""Plain data about a run's nodes for its final memory; docs/memory.md lists the names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskweaver.treesearch.model.artifacts import artifact_commands, changes
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind, PhaseOutcome
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.run_facts import RunFacts
from taskweaver.treesearch.record.run_statistics import Effect, gained
from taskweaver.treesearch.reports.reproducing import SHELL_SCRIPT

_TOP = 5
_DIFF_CHARS = 4000
_ERROR_CHARS = 1200
_COMPARED = frozenset({NodeKind.IMPROVE, NodeKind.HYPERPARAM})


def paper_index(journal: Journal, facts: RunFacts) -> dict[str, Any]:
    """Return data about a run's nodes: the best ones, the baseline, failures, comparisons."""
    best, baseline = journal.best(), journal.baseline
    index: dict[str, Any] = {
        "best_node": best.id if best else None,
        "report": "report.md",
        "journal": "journal.json",
        "counts": {
            "nodes": len(journal),
            "good": len(journal.good),
            "failed": len(journal.buggy),
        },
        "judgements": run_statistics.overruled(journal),
        "confirmation": run_statistics.confirmation(journal),
        "certainty": run_statistics.certainty(journal),
        "top_nodes_data": [_node(journal, node) for node in journal.leaders(_TOP)],
        "attempts_data": _attempts(journal, facts),
        "failed_nodes_data": [_failed(journal, node) for node in journal.buggy],
        "repeated_data": {
            node.id: run_statistics.reached(journal, node)
            for node in journal.good
            if not node.repeats and journal.repetitions(node.id)
        },
    }
    if best is not None:
        index["best_node_data"] = _best(journal, best, baseline)
    if baseline is not None and baseline is not best:
        index["baseline_data"] = _node(journal, baseline)
    return index


def _metric(journal: Journal, node: Node) -> dict[str, Any]:
    objective, spread = journal.objective, journal.repeated_samples(node.id)
    samples = journal.samples(node.id)
    return {
        "name": objective.name,
        "value": node.value,
        "other_seeds": list(spread.values) if spread else [],
        "mean": samples.mean,
        "standard_error": samples.standard_error,
        "n": samples.n,
        "unit": objective.unit,
        "text": run_statistics.reached(journal, node),
        "direction": "maximize" if objective.maximize else "minimize",
    }


def _node(journal: Journal, node: Node) -> dict[str, Any]:
    """Return a node as a comparison shows it."""
    parent = _parent(journal, node)
    return {
        "id": node.id,
        "branch_id": node.branch,
        "parent": node.parent,
        "kind": str(node.kind),
        "name": node.name,
        "stage": node.stage,
        "plan": node.plan,
        "metric": _metric(journal, node),
        "gain_over_parent": _gain(journal, node, parent),
        "changed": _changed(journal, node),
        "parameters": _parameters(journal, node),
        "analysis": run_statistics.lessons(journal, node).get("findings") or node.analysis,
        "vlm_feedback_summary": node.plot_feedback,
    }


def _best(journal: Journal, node: Node, baseline: Node | None) -> dict[str, Any]:
    """Return all that is known of the best node."""
    commands = artifact_commands(node.artifacts)
    values = node.metric.values if node.metric else {}
    parent = _parent(journal, node)
    before = journal.files(parent.id) if parent else {}
    return {
        **_node(journal, node),
        "gain": _gain(journal, node, baseline),
        "metric_per_dataset": {
            name: journal.objective.text(value) for name, value in values.items() if name
        },
        "changes": changes(before, journal.files(node.id), _DIFF_CHARS) if parent else "",
        "commands": {name: "; ".join(lines) for name, lines in commands.items() if lines},
        "files": [
            f"{path} ({len(text.splitlines()):,} lines)"
            for path, text in sorted(journal.files(node.id).items())
        ],
        "workspace_path": "best/workspace",
        "reproduce": f"best/{SHELL_SCRIPT}",
        "plot_paths": list(node.plots),
        "datasets_successfully_tested": [name for name in node.datasets if name],
        "phases": {phase.name: _phase(phase) for phase in node.phases},
        "exec_time_feedback": node.time_feedback,
    }


def _parent(journal: Journal, node: Node) -> Node | None:
    return journal[node.parent] if node.parent and node.parent in journal else None


def _gain(journal: Journal, node: Node, base: Node | None) -> str:
    """Return how much better a node is than another; of repeated nodes, their means are compared.

    Returns:
        The gain in the objective's unit with its standard error, and in per cent; empty where one
        of them has no value.
    """
    found = None if base is node else run_statistics.gain(journal, node, base)
    return gained(journal, found, base) if found is not None else ""


def _phase(phase: PhaseOutcome) -> str:
    if phase.status == "skipped":
        return phase.status
    message = " ".join(phase.message.split())
    return f"{phase.status}, {phase.seconds:.1f} s" + (f"; {message}" if message else "")


def _changed(journal: Journal, node: Node) -> str:
    """Return the changes of a node from its parent: its name, and lines per file."""
    parent = _parent(journal, node)
    if parent is None:
        return ""
    before, after = journal.files(parent.id), journal.files(node.id)
    files = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    parts = [node.name, ", ".join(f"{path} {_lines(before, after, path)}" for path in files)]
    return "; ".join(filter(None, parts)) or "no file"


def _lines(before: Mapping[str, str], after: Mapping[str, str], path: str) -> str:
    diff = changes({path: before.get(path, "")}, {path: after.get(path, "")}, limit_chars=1 << 20)
    lines = diff.splitlines()[2:]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return f"(+{added} -{removed} lines)"


def _parameters(journal: Journal, node: Node) -> dict[str, str]:
    """Return the parameters the names of a node and its ancestors set; the nearest one holds."""
    found: dict[str, str] = {}
    for step in journal.path(node.id):
        name, sign, value = step.name.partition("=")
        if sign:
            found[name.strip()] = value.strip()
    return found


def _attempts(journal: Journal, facts: RunFacts) -> list[dict[str, Any]]:
    """Return ablations, and attempts that are no better than the node they came from."""
    kinds = _COMPARED | {NodeKind.ABLATION}
    good = [node for node in journal.good if node.kind in kinds and not node.repeats]
    return [
        {
            "id": effect.node.id,
            "kind": str(effect.node.kind),
            "name": effect.node.name,
            "metric": _metric(journal, effect.node),
            "gain": _gain(journal, effect.node, effect.base),
            "compared_with": effect.base.id if effect.base else "",
        }
        for effect in run_statistics.effects(journal, facts, good)
        if effect.node.kind is NodeKind.ABLATION or not _is_better(effect)
    ]


def _is_better(effect: Effect) -> bool:
    found = effect.difference
    return effect.base is None or bool(found and found.gain > 0 and found.is_clear)


def _failed(journal: Journal, node: Node) -> dict[str, Any]:
    error = f"{node.error.kind}: {node.error.message}" if node.error else str(node.status)
    return {
        "id": node.id,
        "branch_id": node.branch,
        "parent": node.parent,
        "kind": str(node.kind),
        "error": error[:_ERROR_CHARS],
        "fixed_by": [child.id for child in journal.children(node.id) if child.is_good],
    }
