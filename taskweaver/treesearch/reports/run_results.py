"""The results of a run: written at its end, and read by the next run of the same idea.

Written are journal, summaries, report, page, and the memory for a paper. Phase 0 of the next run
reads the findings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.run.paper import generate_final_memory
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.idea import Idea
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import Budget
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.places import LOGS, RunPlaces
from taskweaver.treesearch.record.run_statistics import Budgets, RunFacts, StageFacts, Use
from taskweaver.treesearch.record.runlog import RunState, fold, read_log
from taskweaver.treesearch.reports.html_page import write_page
from taskweaver.treesearch.reports.markdown_report import write_report
from taskweaver.treesearch.reports.run_data import paper_index, write_outputs
from taskweaver.utils.text import shorten_words

_MOST_RUNS = 3
_MOST_ERRORS = 5
_TEXT_CHARS = 400


def write_results(
    places: RunPlaces, state: RunState, budget: Budget, store: BranchedMemory | None
) -> Path:
    """Write all results of a run, with its memory if it has one, and return the report.

    Raises:
        OSError: If it cannot be written.
    """
    journal, facts = state.journal, run_facts(places, state, budget)
    write_outputs(journal, places.folder, facts)
    report = write_report(journal, places.folder, facts)
    page = write_page(journal, places.folder, facts, store)
    best = journal.best()
    if store is not None:
        target = places.folder / LOGS / "memory_database.html"
        run_page = Path(os.path.relpath(page, target.parent)).as_posix()
        store.write_page(target, title=facts.title, run_page=run_page)
        root = store.root
        if root is not None:
            branch = best.branch if best else None
            index = paper_index(journal, facts)
            generate_final_memory(store, places.folder, root.id, branch, artifacts_index=index)
    return report


def results_of(places: RunPlaces, config: SearchConfig) -> Path:
    """Write the results of a run that no process works on, and return the report.

    Raises:
        SearchError: If there is no run.
    """
    state = fold(read_log(places.log))
    if state is None:
        raise SearchError(f"The run {places.folder.name} has not begun.")
    budget = Budget(*config.allowance, before_s=state.seconds, spent=state.spent, clock=float)
    if not places.memory.exists():
        return write_results(places, state, budget, None)
    # Only read here: its logs are in another folder than the usual one.
    with BranchedMemory(places.memory, MemoryConfig(memory_log_enabled=False)) as store:
        return write_results(places, state, budget, store)


def run_facts(places: RunPlaces, state: RunState, budget: Budget) -> RunFacts:
    """Return the facts about a run beside its nodes."""
    journal = state.journal
    stages = [(passed.state, passed.reason, passed.best) for passed in state.passed]
    if state.stage is not None:
        best = journal.best(journal.of_stage(state.stage.stage.number))
        stages.append((state.stage, "", best.id if best else None))
    ends = [node.finished_at for node in journal.nodes if node.finished_at is not None]
    return RunFacts(
        name=places.folder.name,
        title=state.title,
        started_at=state.started_at,
        finished_at=max(ends, default=None) if state.is_over else None,
        budgets=Budgets(
            Use(sum(node.kind is not NodeKind.SEED for node in journal.finished), budget.steps),
            Use(budget.elapsed_s, budget.seconds),
            Use(budget.tokens_used, budget.tokens),
            None if budget.spent.money is None else Use(budget.money_used, budget.money),
        ),
        beside=budget.spent - run_statistics.total_cost(journal.nodes),
        stages=tuple(
            StageFacts(one.stage.number, one.stage.name, reason, one.base, best_id)
            for one, reason, best_id in stages
        ),
        reason=state.reason,
    )


def earlier_runs(places: RunPlaces, idea: Idea) -> tuple[Mapping[str, Any], str]:
    """Return the findings of the newest earlier runs of an idea, as data and in words.

    Runs whose idea has the same title count.
    """
    found = []
    others = [path for path in places.folder.parent.glob("*/journal.jsonl") if path != places.log]
    for log in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            entries = read_log(log)
            state = fold(entries)
        except SearchError:
            continue  # a run that cannot be read teaches nothing
        if state is not None and entries[0].get("title") == idea.title:
            found.append(_findings(log.parent.name, state.journal))
        if len(found) == _MOST_RUNS:
            break
    return {"runs": found}, "\n\n".join(_in_words(run) for run in found)


def _findings(name: str, journal: Journal) -> dict[str, Any]:
    best = journal.best()
    errors = [
        f"{node.kind}: {node.error.kind}: {shorten_words(node.error.message, _TEXT_CHARS)}"
        for node in journal.buggy
        if node.error is not None
    ]
    return {
        "run": name,
        "nodes": len(journal),
        "best": _step(best, journal) if best else None,
        "path": [_step(node, journal) for node in journal.path(best.id)] if best else [],
        "errors": list(dict.fromkeys(errors))[:_MOST_ERRORS],
    }


def _step(node: Node, journal: Journal) -> dict[str, Any]:
    return {
        "kind": node.kind.value,
        "change": node.name,
        "metric": journal.objective.text(node.value),
        "plan": shorten_words(node.plan, _TEXT_CHARS),
    }


def _in_words(run: Mapping[str, Any]) -> str:
    lines = [f"Run {run['run']}, {run['nodes']} nodes. Ids of nodes here are those of that run."]
    lines += [
        f"- {step['kind']} {step['change']}: {step['metric']}. {step['plan']}"
        for step in run["path"]
    ]
    lines += [f"- failed: {error}" for error in run["errors"]]
    return "\n".join(lines)
