"""The stages of a search: their goals, and when each is over."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.utils.text import counted


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage.

    Attributes:
        number: From 1.
        name: Its name.
        growth: Kind of the children of its good nodes.
        goals: Its goals; part of every prompt.
        patience: Nodes without a better one after which it is over; 0 for none.
    """

    number: int
    name: str
    growth: NodeKind
    goals: str
    patience: int = 0

    @property
    def label(self) -> str:
        """Its name, as events and files spell it."""
        return f"{self.number}_{self.name}"


STAGES = (
    Stage(
        1,
        "initial_implementation",
        NodeKind.IMPROVE,
        "Get a first version to work from end to end: simple, correct, and measured by the"
        " evaluation of the idea. Simple data and plain methods are enough.",
    ),
    Stage(
        2,
        "baseline_tuning",
        NodeKind.HYPERPARAM,
        "Tune the parameters of the version that works, one at a time, and keep its method unless a"
        " review asks for a larger change. Good values add up: begin with the best so far.",
        patience=4,
    ),
    Stage(
        3,
        "creative_research",
        NodeKind.IMPROVE,
        "Try better methods than the tuned one, each for a reason that can be told, and learn why"
        " they help or do not.",
        patience=6,
    ),
    Stage(
        4,
        "ablation_studies",
        NodeKind.ABLATION,
        "Take one part of the best version away at a time, and measure what it was worth.",
    ),
)


@dataclass(frozen=True, slots=True)
class StageState:
    """Stage and substage of a search.

    Attributes:
        stage: The stage.
        base: Id of the best node when it began; None in the first.
        substage: Number of the substage, from 1.
        goals: Goals of the substage; those of the stage by default.
        first: Number of nodes when it began.
    """

    stage: Stage
    base: str | None = None
    substage: int = 1
    goals: str = ""
    first: int = 0

    @property
    def label(self) -> str:
        """Stage and substage, as events and files spell them."""
        return f"{self.stage.label}_{self.substage}"

    @property
    def title(self) -> str:
        """The same for people."""
        part = f", part {self.substage}" if self.substage > 1 else ""
        return f"stage {self.stage.number}, {self.stage.name.replace('_', ' ')}{part}"


def why_over(state: StageState, journal: Journal, *, drafts: int, max_nodes: int) -> str:
    """Return why a stage is over, or an empty text while it is not.

    The first stage begins with `drafts`; no stage has more than `max_nodes`.
    """
    nodes = journal.of_stage(state.stage.number)
    done = [node for node in nodes if node.finished_at is not None]
    if len(done) >= max_nodes:
        return f"limit of the stage reached: {counted(max_nodes, 'node')}"
    if state.stage.number == 1:
        has_drafts = sum(node.kind is NodeKind.DRAFT for node in done) >= drafts
        is_good = any(node.is_good for node in done)
        return "its drafts are done, and one of them works" if has_drafts and is_good else ""
    is_new = bool(done) and done[-1].step > state.first
    if is_new and repeats_parent(done[-1], journal):
        return f"nothing new was proposed: {done[-1].id} is the same as {done[-1].parent}"
    patience = state.stage.patience
    if patience and since_better(state, journal, done) >= patience:
        return f"the last {patience} nodes were no better"
    return ""


def repeats_parent(node: Node, journal: Journal) -> bool:
    """Return whether a node proposes exactly the same as its parent."""
    if node.parent is None or node.artifacts is None:  # nothing usable was proposed at all
        return False
    return node.same_as == node.parent or node.artifacts == journal[node.parent].artifacts


def since_better(state: StageState, journal: Journal, done: list[Node]) -> int:
    """Return how many finished nodes of a substage came after the last that was better."""
    best = journal.rank(state.base) if state.base else -math.inf
    last = 0
    for number, node in enumerate(done, 1):
        rank = journal.rank(node.id)
        if rank > best and node.is_good and not node.repeats:
            best, last = rank, number
    return min(len(done) - last, sum(node.step > state.first for node in done))
