"""Runs of searches as clients see them: secrets are masked."""

from __future__ import annotations

from taskweaver.doors.agent_api.searches import models
from taskweaver.doors.agent_api.searches.processes import SearchProcesses
from taskweaver.doors.agent_api.searches.reading import ReadRun
from taskweaver.server.operations import view
from taskweaver.treesearch.model.artifacts import artifact_commands, changes
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.treesearch.reports.run_data import read_phase_logs
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

_DIFF_CHARS = 200_000
_LOG_BYTES = 64 << 10


def run_view(run: ReadRun, processes: SearchProcesses) -> models.SearchRun:
    """Return a run as clients see it."""
    name, state, budget = run.places.folder.name, run.state, run.budget
    objective, best = state.journal.objective, state.journal.best()
    is_ours = processes.is_running(name)
    is_running = is_ours or (run.is_worked_on and not state.is_over)
    return view(
        models.SearchRun,
        state,
        name=name,
        title=redact_secrets(state.title),
        state="running" if is_running else "over" if state.is_over else "stopped",
        is_ours=is_ours,
        is_stopping=processes.is_stopping(name),
        reason=redact_secrets(state.reason),
        stage=state.stage.title if state.stage else "",
        nodes=len(state.journal),
        repetitions=sum(node.kind is NodeKind.SEED for node in state.journal.nodes),
        metric=objective.name,
        unit=objective.unit,
        maximize=objective.maximize,
        best=best.id if best else "",
        best_value=state.journal.samples(best.id).mean if best else None,
        tokens=budget.tokens_used,
        cost=state.spent.money,
        budget_nodes=budget.steps or None,
        budget_seconds=budget.seconds or None,
        budget_tokens=budget.tokens or None,
        budget_cost=budget.money or None,
    )


def tree_view(run: ReadRun, processes: SearchProcesses, seen: str) -> models.SearchTree:
    """Return a run with its attempts, unless their version was seen."""
    journal = run.state.journal
    nodes = None if seen == run.version else [_brief(node, journal) for node in journal.nodes]
    return models.SearchTree(
        run=run_view(run, processes),
        version=run.version,
        nodes=nodes,
        output=redact_secrets(processes.output(run.places.folder.name)),
    )


def _brief(node: Node, journal: Journal) -> models.SearchNodeSummary:
    samples = journal.samples(node.id) if node.is_good else None
    is_repeated = samples is not None and samples.n > 1
    return view(
        models.SearchNodeSummary,
        node,
        node=node.id,
        kind=node.kind.value,
        status=node.status.value,
        value=samples.mean if samples and is_repeated else node.value,
        error=samples.standard_error if samples and is_repeated else None,
        plan=redact_secrets(node.plan.strip().partition("\n")[0][:120]),
        seconds=node.exec_seconds,
    )


def node_view(run: ReadRun, node: Node) -> models.SearchNode:
    """Return an attempt with its program and logs; reads files."""
    journal = run.state.journal
    files, before = journal.files(node.id), journal.files(node.parent or "")
    return models.SearchNode(
        node=redact_secrets_in(node.to_dict()),
        files=redact_secrets_in(dict(files)),
        diff=redact_secrets(changes(before, files, _DIFF_CHARS)),
        commands=redact_secrets_in(artifact_commands(node.artifacts)),
        logs=redact_secrets_in(read_phase_logs(run.places.node(node.id), _LOG_BYTES)),
    )
