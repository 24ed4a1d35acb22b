"""Writes the results of a run: journal, summaries, report, page, and its memory for a paper."""

from __future__ import annotations

from pathlib import Path

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.run.paper import generate_final_memory
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.config import SearchConfig
from taskweaver.treesearch.model.limits import Budget
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.treesearch.record import run_statistics
from taskweaver.treesearch.record.places import LOGS, RunPlaces
from taskweaver.treesearch.record.run_statistics import Budgets, RunFacts, StageFacts, Use
from taskweaver.treesearch.record.runlog import read_log
from taskweaver.treesearch.record.state import RunState, fold
from taskweaver.treesearch.reports.html_page import write_page
from taskweaver.treesearch.reports.markdown_report import write_report
from taskweaver.treesearch.reports.run_data import paper_index, write_outputs


def write_results(
    places: RunPlaces, state: RunState, budget: Budget, store: BranchedMemory | None
) -> Path:
    """Write all results of a run, with its memory if it has one; return the report.

    Raises:
        OSError: If it cannot be written.
    """
    journal, facts = state.journal, run_facts(places, state, budget)
    write_outputs(journal, places.folder, facts)
    report = write_report(journal, places.folder, facts)
    write_page(journal, places.folder, facts, store)
    best = journal.best()
    if store is not None:
        store.write_page(places.folder / LOGS / "memory_database.html", title=facts.title)
        root = store.root
        if root is not None:
            branch = best.branch if best else None
            index = paper_index(journal, facts)
            generate_final_memory(store, places.folder, root.id, branch, artifacts_index=index)
    return report


def results_of(places: RunPlaces, config: SearchConfig) -> Path:
    """Write the results of a run that no process works on; return the report.

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
    stages = [
        StageFacts(
            passed.state.stage.number,
            passed.state.stage.name,
            passed.reason,
            passed.state.base,
            passed.best,
        )
        for passed in state.passed
    ]
    if state.stage is not None:
        now = state.stage
        best = journal.best(journal.of_stage(now.stage.number))
        stages.append(
            StageFacts(now.stage.number, now.stage.name, "", now.base, best.id if best else None)
        )
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
        stages=tuple(stages),
        reason=state.reason,
    )
