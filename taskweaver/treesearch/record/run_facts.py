"""Plain facts about a run, for reports and live views; nothing here looks anything up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.metric import Objective
from taskweaver.treesearch.model.node import Cost, NodeKind, NodeStatus


@dataclass(frozen=True, slots=True)
class Use:
    """Use of a limited quantity; a limit of 0 is none."""

    used: float = 0.0
    limit: float = 0.0


@dataclass(frozen=True, slots=True)
class Budgets:
    """Use of a run's budget.

    Attributes:
        nodes: Nodes that have finished, seed evaluations not counted.
        seconds: Time since it started, waiting between two sittings not counted.
        tokens: Tokens the models read and wrote.
        money: In the currency of the configured prices; None when they are unknown.
    """

    nodes: Use = field(default_factory=Use)
    seconds: Use = field(default_factory=Use)
    tokens: Use = field(default_factory=Use)
    money: Use | None = None


@dataclass(frozen=True, slots=True)
class StageFacts:
    """A stage the run has been in.

    Attributes:
        number: From 1.
        name: Its name.
        reason: Why it ended; empty while it goes on.
        base: Id of the best node when it began; None in the first.
        best: Id of the best node when it ended; None while nothing was measured.
    """

    number: int
    name: str
    reason: str = ""
    base: str | None = None
    best: str | None = None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts about a run beside its nodes.

    Attributes:
        name: Name of its folder.
        title: Title of the idea.
        started_at: When it began, in seconds since 1970.
        finished_at: When it ended; None while it goes on.
        budgets: Use of its budget.
        stages: The stages it has been in, in order.
        reason: Why it ended; empty while it goes on.
        beside: Consumption of model calls that are of no finished node: about stages, for the
            memory, of attempts that were cancelled or lost.
    """

    name: str
    title: str
    started_at: float
    finished_at: float | None = None
    budgets: Budgets = field(default_factory=Budgets)
    stages: tuple[StageFacts, ...] = ()
    reason: str = ""
    beside: Cost = field(default_factory=Cost)

    def base_of(self, stage: int) -> str | None:
        """Return the id of the node a stage began with."""
        return next((fact.base for fact in self.stages if fact.number == stage), None)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node, as a live view shows it; see `Node`. One that runs may have its figure already.

    A repetition is another measurement of the program of an earlier node.
    """

    id: str
    kind: NodeKind
    status: NodeStatus
    parent: str | None = None
    name: str = ""
    value: float | None = None
    is_repetition: bool = False


@dataclass(frozen=True, slots=True)
class RunningPhase:
    """A running node with its phase, and when that began, in seconds since 1970."""

    node_id: str
    phase: str
    since: float


@dataclass(frozen=True, slots=True)
class SearchSnapshot:
    """A search at one moment, in seconds since 1970.

    The stage is spelled as in `StageState.title`, and empty before the first; the best node is None
    while nothing was measured, and may only be lucky where it is a candidate.
    """

    name: str
    objective: Objective
    stage: str
    nodes: tuple[NodeFacts, ...]
    best: str | None
    running: tuple[RunningPhase, ...]
    budgets: Budgets
    now: float
    is_candidate: bool = False

    @classmethod
    def of(
        cls,
        journal: Journal,
        *,
        name: str,
        stage: str,
        budgets: Budgets,
        now: float,
        running: Iterable[RunningPhase] = (),
    ) -> SearchSnapshot:
        """Return the snapshot of a journal."""
        best = journal.best()
        nodes = tuple(
            NodeFacts(
                node.id,
                node.kind,
                node.status,
                node.parent,
                node.name,
                journal.figure(node.id) if node.value is None else node.value,
                is_repetition=bool(node.repeats),
            )
            for node in journal.nodes
        )
        return cls(
            name,
            journal.objective,
            stage,
            nodes,
            best.id if best else None,
            tuple(running),
            budgets,
            now,
            is_candidate=best is not None and journal.is_candidate(best.id),
        )
