"""Plain facts about a run, for what is written and shown of it; nothing here looks anything up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.metric import Objective
from taskweaver.treesearch.model.node import Cost, NodeKind, NodeStatus


@dataclass(frozen=True, slots=True)
class Use:
    """How much of something was used.

    Attributes:
        used: How much.
        limit: How much there is; 0 for no limit.
    """

    used: float = 0.0
    limit: float = 0.0


@dataclass(frozen=True, slots=True)
class Budgets:
    """What a run has used of what it may use.

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
    """What is known of a run beside its nodes.

    Attributes:
        name: Name of its folder.
        title: Title of the idea.
        started_at: When it began, in seconds since 1970.
        finished_at: When it ended; None while it goes on.
        objective: What it optimises.
        budgets: What it used.
        stages: The stages it has been in, in order.
        reason: Why it ended; empty while it goes on.
        beside: What model calls consumed that are of no finished node: about stages, for the
            memory, of attempts that were given up or lost.
    """

    name: str
    title: str
    started_at: float
    objective: Objective
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
    """A node, as a live view shows it.

    Attributes:
        id: Its id.
        kind: Why it was made.
        status: What became of it.
        parent: Id of the node it was made from.
        name: What is tuned or taken away.
        value: What it reached.
    """

    id: str
    kind: NodeKind
    status: NodeStatus
    parent: str | None = None
    name: str = ""
    value: float | None = None


@dataclass(frozen=True, slots=True)
class RunningPhase:
    """A node that is worked on.

    Attributes:
        node_id: The node.
        phase: What is done at the moment.
        since: When that began, in seconds since 1970.
    """

    node_id: str
    phase: str
    since: float


@dataclass(frozen=True, slots=True)
class SearchSnapshot:
    """A search at one moment.

    Attributes:
        name: Name of the run.
        objective: What it optimises.
        stage: Stage and substage, as `StageState.title` spells them; empty before the first.
        nodes: All nodes, in order.
        best: Id of the best; None while nothing was measured.
        running: What is worked on.
        budgets: What was used.
        now: The moment, in seconds since 1970.
    """

    name: str
    objective: Objective
    stage: str
    nodes: tuple[NodeFacts, ...]
    best: str | None
    running: tuple[RunningPhase, ...]
    budgets: Budgets
    now: float

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
        """Return what a journal holds now."""
        best = journal.best()
        nodes = tuple(
            NodeFacts(node.id, node.kind, node.status, node.parent, node.name, node.value)
            for node in journal.nodes
        )
        best_id = best.id if best else None
        return cls(name, journal.objective, stage, nodes, best_id, tuple(running), budgets, now)
