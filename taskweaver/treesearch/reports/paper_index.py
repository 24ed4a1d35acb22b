"""Plain data about a run's nodes for its final memory; docs/memory.md lists the names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.run_facts import RunFacts
from taskweaver.treesearch.reports.node_facts import gain_over, metric_facts, node_facts, pick
from taskweaver.treesearch.reports.reproducing import SHELL_SCRIPT

_TOP = 5
_ERROR_CHARS = 1200
_ATTEMPTS = frozenset({NodeKind.IMPROVE, NodeKind.HYPERPARAM, NodeKind.ABLATION})
_NODE = (
    "id", "branch_id", "parent", "kind", "name", "stage", "plan", "metric", "gain_over_parent",
    "changed", "parameters", "analysis", "vlm_feedback_summary",
)  # fmt: skip
_BEST = (
    *_NODE, "metric_per_dataset", "changes", "commands", "files", "plot_paths",
    "datasets_successfully_tested", "phases", "exec_time_feedback",
)  # fmt: skip
_FAILED = ("id", "branch_id", "parent", "kind", "error", "fixed_by")


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
        "top_nodes_data": [
            pick(node_facts(journal, node), _NODE) for node in journal.leaders(_TOP)
        ],
        "attempts_data": list(_attempts(journal, facts)),
        "failed_nodes_data": [
            pick({**found, "error": found["error"][:_ERROR_CHARS]}, _FAILED)
            for found in (node_facts(journal, node) for node in journal.buggy)
        ],
        "repeated_data": {
            node.id: run_statistics.reached(journal, node)
            for node in journal.good
            if not node.repeats and journal.repetitions(node.id)
        },
    }
    if best is not None:
        index["best_node_data"] = {
            **pick(node_facts(journal, best), _BEST),
            "gain": gain_over(journal, best, baseline),
            "workspace_path": "best/workspace",
            "reproduce": f"best/{SHELL_SCRIPT}",
        }
    if baseline is not None and baseline is not best:
        index["baseline_data"] = pick(node_facts(journal, baseline), _NODE)
    return index


def _attempts(journal: Journal, facts: RunFacts) -> Iterator[dict[str, Any]]:
    """Yield ablations, and attempts that are no better than the node they came from."""
    good = [node for node in journal.good if node.kind in _ATTEMPTS and not node.repeats]
    for effect in run_statistics.effects(journal, facts, good):
        node, base, found = effect.node, effect.base, effect.difference
        is_better = base is None or (found is not None and found.gain > 0 and found.is_clear)
        if node.kind is NodeKind.ABLATION or not is_better:
            yield {
                "id": node.id,
                "kind": str(node.kind),
                "name": node.name,
                "metric": metric_facts(journal, node),
                "gain": gain_over(journal, node, base),
                "compared_with": base.id if base else "",
            }
