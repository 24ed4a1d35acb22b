"""Facts about one node as plain data: the final memory and the page select from them.

docs/memory.md lists the names that the final memory reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from taskweaver.treesearch.model.artifacts import artifact_commands, changes, first_lines
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, PhaseOutcome
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.run_statistics import gained

_DIFF_CHARS = 4000
_WHOLE_DIFF = 1 << 20


def node_facts(journal: Journal, node: Node) -> dict[str, Any]:
    """Return the fields of a node, and the facts that follow from its run."""
    parent = journal[node.parent] if node.parent and node.parent in journal else None
    before, files = journal.files(node.parent or ""), journal.files(node.id)
    diffs = {
        path: changes({path: before.get(path, "")}, {path: files[path]}, _WHOLE_DIFF)
        for path in sorted(files)
        if parent and before.get(path, "") != files[path]
    }
    lessons = run_statistics.lessons(journal, node)
    error = f"{node.error.kind}: {node.error.message}" if node.error else ""
    values = node.metric.values if node.metric else {}
    return {
        **node.to_dict(),
        "branch_id": node.branch,
        "metric": metric_facts(journal, node),
        "metric_per_dataset": {
            name: journal.objective.text(value) for name, value in values.items() if name
        },
        "gain_over_parent": gain_over(journal, node, parent),
        "changed": _changed(node, diffs) if parent else "",
        "changes": first_lines("\n".join(diffs.values()), _DIFF_CHARS),
        "parameters": _parameters(journal, node),
        "commands": {
            phase: "; ".join(lines)
            for phase, lines in artifact_commands(node.artifacts).items()
            if lines
        },
        "files": [
            f"{path} ({len(text.splitlines()):,} lines)" for path, text in sorted(files.items())
        ],
        "phases": {phase.name: _phase(phase) for phase in node.phases},
        "error": error or (str(node.status) if node.has_failed else ""),
        "fixed_by": [child.id for child in journal.children(node.id) if child.is_good],
        "review": node.analysis,
        "analysis": lessons.get("findings") or node.analysis,
        "summary": lessons,
        "vlm_feedback_summary": node.plot_feedback,
        "plot_paths": node.plots,
        "datasets_successfully_tested": [name for name in node.datasets if name],
        "exec_time_feedback": node.time_feedback,
        "seconds": round(run_statistics.seconds(node), 2),
    }


def pick(facts: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the facts of these names."""
    return {name: facts[name] for name in names}


def gain_over(journal: Journal, node: Node, base: Node | None) -> str:
    """Return how much better a node is than another; of repeated nodes, their means are compared.

    Returns:
        The gain in the objective's unit with its standard error, and in per cent; empty where one
        of the nodes has no value.
    """
    found = None if base is node else run_statistics.gain(journal, node, base)
    return gained(journal, found, base) if found is not None else ""


def metric_facts(journal: Journal, node: Node) -> dict[str, Any]:
    """Return the metric of a node, over its repetitions too."""
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


def _changed(node: Node, diffs: Mapping[str, str]) -> str:
    """Return the changes of a node from its parent: its name, and lines per file."""
    counts = []
    for path, diff in diffs.items():
        lines = diff.splitlines()[2:]
        added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        counts.append(f"{path} (+{added} -{removed} lines)")
    return "; ".join(filter(None, [node.name, ", ".join(counts)])) or "no file"


def _parameters(journal: Journal, node: Node) -> dict[str, str]:
    """Return the parameters the names of a node and its ancestors set; the nearest one holds."""
    found: dict[str, str] = {}
    for step in journal.path(node.id):
        name, sign, value = step.name.partition("=")
        if sign:
            found[name.strip()] = value.strip()
    return found


def _phase(phase: PhaseOutcome) -> str:
    if phase.status == "skipped":
        return phase.status
    message = " ".join(phase.message.split())
    return f"{phase.status}, {phase.seconds:.1f} s" + (f"; {message}" if message else "")
