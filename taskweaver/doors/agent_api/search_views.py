"""Runs of searches: read from their logs, and as clients see them, with secrets masked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.errors import ConfigError
from taskweaver.doors.agent_api.search_processes import SearchProcesses
from taskweaver.doors.agent_api.views import round_dict
from taskweaver.memory.branched.errors import BranchedMemoryError
from taskweaver.server.operations import view
from taskweaver.treesearch.errors import SearchError, system_errors
from taskweaver.treesearch.model.artifacts import artifact_commands, changes
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import Budget
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.treesearch.record.runlog import RunState, fold, is_worked_on, read_log
from taskweaver.treesearch.reports.run_data import read_phase_logs
from taskweaver.treesearch.service import allowance_of, find_run, node_round, runs
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")]


class SearchLimits(BaseModel):
    """Limits of a run: nodes, seconds, money in the currency of the prices, tokens."""

    steps: int | None = Field(default=None, ge=1, le=1_000_000)
    seconds: int | None = Field(default=None, ge=1, le=10_000_000)
    cost: float | None = Field(default=None, gt=0, le=1_000_000, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=1, le=10**12)


class NewSearch(SearchLimits):
    """An idea to search, as Markdown, with at least one limit.

    `files` are texts that lie beside the idea, such as the evaluator that it names; attempts find
    those of `data` in their folder ``data``.
    """

    idea: str = Field(min_length=1, max_length=200_000)
    files: dict[FileName, str] = Field(default_factory=dict, max_length=20)
    data: dict[FileName, str] = Field(default_factory=dict, max_length=20)

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if (self.steps, self.seconds, self.cost, self.tokens) == (None, None, None, None):
            raise ValueError("a search needs a limit: steps, seconds, cost or tokens")
        if "idea.md" in self.files:
            raise ValueError("idea.md is the idea itself")
        return self


class SearchName(BaseModel):
    """The name of a run."""

    name: str


class SearchRun(BaseModel):
    """A run of a tree search.

    `nodes` counts those that run too, and `repetitions`, which measure an attempt again and which
    `budget_nodes` does not limit; `seconds`, `tokens` and `cost` are used so far, the budgets
    limit them, null where there is no limit. `is_ours` says whether this server works on it, and
    can stop it.
    """

    name: str
    title: str
    state: Literal["running", "stopped", "over"]
    is_ours: bool
    is_stopping: bool
    reason: str
    stage: str
    nodes: int
    repetitions: int
    metric: str
    unit: str
    maximize: bool
    best: str
    best_value: float | None
    started_at: float
    seconds: float
    tokens: int
    cost: float | None
    budget_nodes: int | None
    budget_seconds: float | None
    budget_tokens: int | None
    budget_cost: float | None


class SearchRuns(BaseModel):
    """The runs of tree searches, the newest first."""

    runs: list[SearchRun]


class SearchNodeSummary(BaseModel):
    """An attempt of a search, with the first line of its plan.

    `repeats` is the attempt that it measures again, empty for a program of its own.

    `value` is the mean where it was repeated, `error` the standard error of that.
    """

    node: str
    parent: str | None
    kind: str
    repeats: str
    stage: int
    status: str
    value: float | None
    error: float | None
    plan: str
    seconds: float


class SearchTree(BaseModel):
    """A run with all its attempts, in the order of creation.

    `version` changes with the attempts; they are null where the client has seen it. `output` are
    the last lines that the process of the run printed, where this server started it.
    """

    run: SearchRun
    version: str
    nodes: list[SearchNodeSummary] | None
    output: str


class SearchNode(BaseModel):
    """An attempt with all that is kept of it, as the run's log has it.

    `files` are those of its program, with those that it took over from its parent; `diff` shows
    what it changed in them. `logs` are those of its phases. `round` is the stored round in which it
    was made; null before its end, and in runs without a memory: the events of `branch` tell it.
    """

    node: dict[str, Any]
    files: dict[str, str]
    diff: str
    commands: dict[str, list[str]]
    logs: dict[str, str]
    branch: str
    round: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run as its log was read.

    Attributes:
        places: Its files.
        state: Its state, with the nodes that run.
        budget: Its budget.
        version: A text that changes with the log.
        is_worked_on: Whether a process works on it.
    """

    places: RunPlaces
    state: RunState
    budget: Budget
    version: str
    is_worked_on: bool


def named_run(app: TaskWeaverApp, name: str) -> ReadRun:
    """Return the run of a name.

    Raises:
        SearchError: If there is none, or its log cannot be read.
    """
    places = find_run(app, name)
    found = _read(app, places)
    if found is None:
        raise SearchError(f"The run {places.folder.name} has not begun.")
    return found


def every_run(app: TaskWeaverApp) -> Iterator[ReadRun]:
    """Yield the runs, the newest first, but those that cannot be read."""
    for places in runs(app):
        with suppress(SearchError):  # the command line names the reason
            if found := _read(app, places):
                yield found


def _read(app: TaskWeaverApp, places: RunPlaces) -> ReadRun | None:
    # Before the log: what ended meanwhile is then read to its end.
    is_running = is_worked_on(places.log)
    with system_errors(f"{places.log} cannot be read"):
        facts = places.log.stat()
    version = f"{facts.st_ino:x}-{facts.st_size:x}-{facts.st_mtime_ns:x}-{is_running:d}"
    state = _folded(places.log, version, is_running=is_running)
    if state is None:
        return None
    try:
        limits = allowance_of(app, places)
    except (SearchError, ConfigError):  # who goes on with the run is told; it can be read
        limits = (0, 0.0, 0, 0.0)
    budget = Budget(*limits, before_s=state.seconds, spent=state.spent, clock=float)
    return ReadRun(places, state, budget, version, is_running)


@lru_cache(maxsize=8)
def _folded(log: Path, _version: str, *, is_running: bool) -> RunState | None:
    state = fold(read_log(log), keeps_running=True)
    if state is not None and not is_running:
        for node in state.journal.running:  # they are made again when the run goes on
            if state.is_over:
                state.journal.drop(node.id)
            else:
                state.journal.put(replace(node, status=NodeStatus.CANCELLED))
    return state


_DIFF_CHARS = 200_000
_LOG_BYTES = 64 << 10


def run_view(run: ReadRun, processes: SearchProcesses) -> SearchRun:
    """Return a run as clients see it."""
    name, state, budget = run.places.folder.name, run.state, run.budget
    journal = state.journal
    objective, best = journal.objective, journal.best()
    made = [node for node in journal.nodes if node.status is not NodeStatus.CANCELLED]
    process = processes.of(name)
    is_ours = not process.has_ended
    is_running = is_ours or (run.is_worked_on and not state.is_over)
    is_counting = is_running and run.is_worked_on and state.counted_at
    since = time.time() - state.counted_at if is_counting else 0.0
    return view(
        SearchRun,
        state,
        name=name,
        title=redact_secrets(state.title),
        state="running" if is_running else "over" if state.is_over else "stopped",
        is_ours=is_ours,
        seconds=state.seconds + max(0.0, since),
        is_stopping=is_ours and process.is_stopping,
        reason=redact_secrets(state.reason),
        stage=state.stage.title if state.stage else "",
        nodes=len(made),
        repetitions=sum(node.kind is NodeKind.SEED for node in made),
        metric=objective.name,
        unit=objective.unit,
        maximize=objective.maximize,
        best=best.id if best else "",
        best_value=journal.samples(best.id).mean if best else None,
        tokens=budget.tokens_used,
        cost=state.spent.money,
        budget_nodes=budget.steps or None,
        budget_seconds=budget.seconds or None,
        budget_tokens=budget.tokens or None,
        budget_cost=budget.money or None,
    )


def tree_view(run: ReadRun, processes: SearchProcesses, seen: str) -> SearchTree:
    """Return a run with its attempts, unless their version was seen."""
    journal = run.state.journal
    nodes = None if seen == run.version else [_brief(node, journal) for node in journal.nodes]
    return SearchTree(
        run=run_view(run, processes),
        version=run.version,
        nodes=nodes,
        output=redact_secrets(processes.of(run.places.folder.name).output),
    )


def _brief(node: Node, journal: Journal) -> SearchNodeSummary:
    samples = journal.samples(node.id) if node.is_good else None
    again = samples if samples and samples.n > 1 else None
    return view(
        SearchNodeSummary,
        node,
        node=node.id,
        kind=node.kind.value,
        status=node.status.value,
        value=again.mean if again else node.value,
        error=again.standard_error if again else None,
        plan=redact_secrets(node.plan.strip().partition("\n")[0][:120]),
        seconds=node.exec_seconds,
    )


def node_view(run: ReadRun, node: Node) -> SearchNode:
    """Return an attempt with its program and logs; reads files."""
    journal = run.state.journal
    files, before = journal.files(node.id), journal.files(node.parent or "")
    stored = None
    with suppress(BranchedMemoryError):  # all else is in the log
        stored = node_round(run.places, node) if node.finished_at else None
    return SearchNode(
        node=redact_secrets_in(node.to_dict()),
        files=redact_secrets_in(dict(files)),
        diff=redact_secrets(changes(before, files, _DIFF_CHARS)),
        commands=redact_secrets_in(artifact_commands(node.artifacts)),
        logs=redact_secrets_in(read_phase_logs(run.places.node(node.id), _LOG_BYTES)),
        branch=node.branch or node.id,
        round=round_dict(stored) if stored else None,
    )
