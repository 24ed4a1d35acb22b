"""Runs of searches: read from their logs, and as clients see them, with secrets masked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from taskweaver.app.app import TaskWeaverApp
from taskweaver.config.errors import ConfigError
from taskweaver.doors.agent_api.search_processes import SearchProcesses
from taskweaver.server.operations import view
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.artifacts import artifact_commands, changes
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.limits import Budget
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.treesearch.record.places import RunPlaces
from taskweaver.treesearch.record.runlog import RunState, fold, is_worked_on, read_log
from taskweaver.treesearch.reports.run_data import read_phase_logs
from taskweaver.treesearch.service import allowance_of, find_run, runs
from taskweaver.utils.redact import redact_secrets, redact_secrets_in

_FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")]


class SearchLimits(BaseModel):
    """Limits of a run: nodes, seconds, money in the currency of the prices, tokens."""

    steps: int | None = Field(default=None, ge=1, le=1_000_000)
    seconds: int | None = Field(default=None, ge=1, le=10_000_000)
    cost: float | None = Field(default=None, gt=0, le=1_000_000, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=1, le=10**12)


class NewSearch(SearchLimits):
    """An idea to search, as Markdown, with at least one limit.

    `files` are texts that lie beside the idea, such as the evaluator that it names.
    """

    idea: str = Field(min_length=1, max_length=200_000)
    files: dict[_FileName, str] = Field(default_factory=dict, max_length=20)

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
    what it changed in them. `logs` are those of its phases.
    """

    node: dict[str, Any]
    files: dict[str, str]
    diff: str
    commands: dict[str, list[str]]
    logs: dict[str, str]


_MOST_KEPT = 8


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


class RunReader:
    """Reads runs; it may be asked from any thread."""

    def __init__(self, app: TaskWeaverApp) -> None:
        """Prepare to read the runs of a project."""
        self._app = app
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[str, RunState | None]] = {}

    def find(self, name: str) -> ReadRun:
        """Return the run of a name.

        Raises:
            SearchError: If there is none, or its log cannot be read.
        """
        places = find_run(self._app, name)
        found = self._read(places)
        if found is None:
            raise SearchError(f"The run {places.folder.name} has not begun.")
        return found

    def every(self) -> Iterator[ReadRun]:
        """Yield the runs, the newest first, but those that cannot be read."""
        for places in runs(self._app):
            try:
                found = self._read(places)
            except SearchError:  # the command line names the reason
                continue
            if found is not None:
                yield found

    def _read(self, places: RunPlaces) -> ReadRun | None:
        # Before the log: what ended meanwhile is then read to its end.
        is_running = is_worked_on(places.log)
        version, state = self._state(places, is_running=is_running)
        if state is None:
            return None
        try:
            limits = allowance_of(self._app, places)
        except (SearchError, ConfigError):  # who goes on with the run is told; it can be read
            limits = (0, 0.0, 0, 0.0)
        budget = Budget(*limits, before_s=state.seconds, spent=state.spent, clock=float)
        return ReadRun(places, state, budget, version, is_running)

    def _state(self, places: RunPlaces, *, is_running: bool) -> tuple[str, RunState | None]:
        name = places.folder.name
        try:
            facts = places.log.stat()
        except OSError as error:
            raise SearchError(f"{places.log} cannot be read: {error.strerror}.") from error
        version = f"{facts.st_ino:x}-{facts.st_size:x}-{facts.st_mtime_ns:x}-{is_running:d}"
        with self._lock:
            known = self._kept.get(name)
        if known is None or known[0] != version:
            known = version, fold(read_log(places.log), keeps_running=is_running)
            with self._lock:
                self._kept.pop(name, None)
                self._kept[name] = known
                for oldest in list(self._kept)[:-_MOST_KEPT]:
                    del self._kept[oldest]
        return known


_DIFF_CHARS = 200_000
_LOG_BYTES = 64 << 10


def run_view(run: ReadRun, processes: SearchProcesses) -> SearchRun:
    """Return a run as clients see it."""
    name, state, budget = run.places.folder.name, run.state, run.budget
    objective, best = state.journal.objective, state.journal.best()
    is_ours = processes.is_running(name)
    is_running = is_ours or (run.is_worked_on and not state.is_over)
    return view(
        SearchRun,
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


def tree_view(run: ReadRun, processes: SearchProcesses, seen: str) -> SearchTree:
    """Return a run with its attempts, unless their version was seen."""
    journal = run.state.journal
    nodes = None if seen == run.version else [_brief(node, journal) for node in journal.nodes]
    return SearchTree(
        run=run_view(run, processes),
        version=run.version,
        nodes=nodes,
        output=redact_secrets(processes.output(run.places.folder.name)),
    )


def _brief(node: Node, journal: Journal) -> SearchNodeSummary:
    samples = journal.samples(node.id) if node.is_good else None
    is_repeated = samples is not None and samples.n > 1
    return view(
        SearchNodeSummary,
        node,
        node=node.id,
        kind=node.kind.value,
        status=node.status.value,
        value=samples.mean if samples and is_repeated else node.value,
        error=samples.standard_error if samples and is_repeated else None,
        plan=redact_secrets(node.plan.strip().partition("\n")[0][:120]),
        seconds=node.exec_seconds,
    )


def node_view(run: ReadRun, node: Node) -> SearchNode:
    """Return an attempt with its program and logs; reads files."""
    journal = run.state.journal
    files, before = journal.files(node.id), journal.files(node.parent or "")
    return SearchNode(
        node=redact_secrets_in(node.to_dict()),
        files=redact_secrets_in(dict(files)),
        diff=redact_secrets(changes(before, files, _DIFF_CHARS)),
        commands=redact_secrets_in(artifact_commands(node.artifacts)),
        logs=redact_secrets_in(read_phase_logs(run.places.node(node.id), _LOG_BYTES)),
    )
