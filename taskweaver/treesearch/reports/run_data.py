"""Results of a run as plain data: its journal, stages and costs, and the facts about its nodes.

Everything is worked out from the journal and the facts, and may be written again at any time: a
reader sees the old files or the new ones, never a part. The final memory and the page select from
the facts about nodes. docs/memory.md lists the names that the final memory reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from taskweaver.treesearch.model.artifacts import artifact_commands, changes, first_lines
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Cost, Node, NodeKind, PhaseOutcome
from taskweaver.treesearch.model.phase_plan import PHASES
from taskweaver.treesearch.model.stages import STAGES
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.places import NodePlaces
from taskweaver.treesearch.record.run_statistics import RunFacts, StageFacts, gained
from taskweaver.treesearch.reports.best_node import SHELL_SCRIPT, write_best
from taskweaver.utils.files import write_json
from taskweaver.utils.redact import redact_secrets_in

_DIFF_CHARS = 4000
_WHOLE_DIFF = 1 << 20
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
_NAMED = frozenset({NodeKind.HYPERPARAM, NodeKind.ABLATION})


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
    """Return how much better a node is than another. Of repeated nodes, their means are compared.

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
    """Return the parameters the names of a node and its ancestors set. The nearest name holds."""
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


def write_outputs(journal: Journal, run_dir: Path, facts: RunFacts) -> None:
    """Write ``journal.json``, ``stage_summaries/``, ``best/`` and ``costs.json``.

    Raises:
        OSError: If one of them cannot be written.
    """
    # Copies for readers; a run is resumed from its log, which is exact.
    write_json(run_dir / "journal.json", redact_secrets_in(journal.to_dict()))
    write_json(run_dir / "costs.json", costs(journal, facts.beside))
    for stage in known_stages(journal, facts):
        name = re.sub(r"[^\w-]+", "_", stage.name)[:60] or "stage"
        target = run_dir / "stage_summaries" / f"stage_{stage.number}_{name}.json"
        write_json(target, redact_secrets_in(stage_summary(journal, facts, stage)))
    write_best(journal, run_dir)


def known_stages(journal: Journal, facts: RunFacts) -> list[StageFacts]:
    """Return the stages of a run, those without facts among them, in order."""
    stages = {stage.number: stage for stage in facts.stages}
    names = {stage.number: stage.name for stage in STAGES}
    for node in journal.nodes:
        if node.stage not in stages:
            name = names.get(node.stage, "stage")
            stages[node.stage] = StageFacts(node.stage, name)
    return [stages[number] for number in sorted(stages)]


def stage_summary(journal: Journal, facts: RunFacts, stage: StageFacts) -> dict[str, Any]:
    """Return the outcome of a stage: counts, best, history, names tried, seeds."""
    nodes = journal.of_stage(stage.number)
    best = journal.best(nodes)
    base = journal[stage.base] if stage.base is not None and stage.base in journal else None
    statuses, kinds = run_statistics.count(nodes)
    tried = [node for node in nodes if node.kind in _NAMED]
    evaluated = [node for node in [*nodes, base] if node is not None]
    return {
        "stage": stage.number,
        "name": stage.name,
        "reason": stage.reason,
        "nodes": {"total": len(nodes), **statuses},
        "kinds": dict(kinds),
        "base": _reached(base),
        "best": _reached(best),
        "metric_history": [
            {"step": node.step, "node": node.id, "value": node.value, "best": reached}
            for node, reached in run_statistics.history(journal, nodes)
        ],
        "key_numbers": _key_numbers(journal, nodes, best, base),
        "tried": [
            {
                "name": effect.node.name,
                "kind": effect.node.kind,
                "node": effect.node.id,
                "status": effect.node.status,
                "value": effect.node.value,
                "base": effect.base.id if effect.base else None,
                "gain": effect.gain,
                "gain_error": effect.difference.error if effect.difference else None,
            }
            for effect in run_statistics.effects(journal, facts, tried)
        ],
        "seeds": {
            node.id: spread.to_dict()
            for node in evaluated
            if (spread := journal.repeated_samples(node.id)) is not None
        },
    }


def _reached(node: Node | None) -> dict[str, Any] | None:
    if node is None:
        return None
    return {
        "node": node.id,
        "value": node.value,
        "metric": asdict(node.metric) if node.metric else None,
        "plan": node.plan,
        "summary": dict(node.summary),
    }


def _key_numbers(
    journal: Journal, nodes: list[Node], best: Node | None, base: Node | None
) -> dict[str, Any]:
    failed = sum(node.has_failed for node in nodes)
    found = run_statistics.gain(journal, best, base)
    return {
        "best": best.value if best else None,
        "gain_over_base": found.gain if found else None,
        "gain_error": found.error if found else None,
        "failed_share": failed / len(nodes) if nodes else None,
        "run_seconds_of_best": best.exec_seconds if best else None,
        "seconds": sum(map(run_statistics.seconds, nodes)),
    }


def costs(journal: Journal, beside: Cost) -> dict[str, Any]:
    """Return the costs of model calls and runs, by stage and by kind, times in seconds.

    The consumption `beside` the nodes is in the total.
    """
    by_stage: dict[int, list[Node]] = {}
    for node in journal.nodes:
        by_stage.setdefault(node.stage, []).append(node)
    total = run_statistics.total_cost(journal.nodes) + beside
    return {
        "total": _account(journal.nodes) | asdict(total),
        "by_stage": {
            str(stage): {"total": _account(nodes), "by_kind": _by_kind(nodes)}
            for stage, nodes in sorted(by_stage.items())
        },
        "by_kind": _by_kind(journal.nodes),
        "beside_nodes": asdict(beside),
    }


def _by_kind(nodes: Iterable[Node]) -> dict[str, Any]:
    kinds: dict[NodeKind, list[Node]] = {}
    for node in nodes:
        kinds.setdefault(node.kind, []).append(node)
    return {kind.value: _account(kinds[kind]) for kind in NodeKind if kind in kinds}


def _account(nodes: list[Node]) -> dict[str, Any]:
    return {
        "nodes": len(nodes),
        **asdict(run_statistics.total_cost(nodes)),
        "seconds": sum(map(run_statistics.seconds, nodes)),
        "run_seconds": sum(node.exec_seconds for node in nodes),
    }


def read_phase_logs(places: NodePlaces, most_bytes: int) -> dict[str, str]:
    """Return the logs of a node by phase, their beginnings. Its workspace has another name there.

    Raises:
        OSError: If one cannot be read.
    """
    found = {}
    here = str(places.workspace)  # they are shown to others
    for name in PHASES:
        path = places.phase_logs / f"{name}.log"
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(most_bytes).decode("utf-8", "replace")
                left = path.stat().st_size - most_bytes
            head = head.replace(here, "/workspace")
            found[name] = head if left <= 0 else f"{head}\n... {left:,} bytes left out"
    return found
