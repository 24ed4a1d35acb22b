"""A search on an invented landscape: the real policy and journal, and no attempt carried out.

As in a run, the best draft is repeated with other seeds, new bests are repeated and race where that
showed noise, and slots are filled as soon as they are free. Each evaluation, repetitions too,
counts.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from bench.simulation.landscapes import Landscape, Spot
from taskweaver.treesearch.model.artifacts import ScriptArtifact
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Measurement, Node, NodeKind, NodeStatus, Objective
from taskweaver.treesearch.model.policy import (
    NodeChoice,
    Policy,
    SearchRules,
    StageView,
    drafts_missing,
)
from taskweaver.treesearch.model.repetitions import Repetitions

_FAILS, _REPAIR_FAILS = 0.25, 0.5
_SHORTEST, _LONGEST = 0.5, 1.5
Chosen = Callable[[Journal], Node | None]


@dataclass(frozen=True, slots=True)
class RunConditions:
    """RunConditions of simulated runs.

    Attributes:
        landscape: The landscape.
        noise: Standard deviation of a measurement.
        workers: Attempts at one time.
        evaluations: Evaluations of a run.
        repeats: Most repetitions of one attempt, and of races.
        rules: Rules of the policy.
    """

    landscape: Landscape
    noise: float = 0.0
    workers: int = 1
    evaluations: int = 50
    repeats: int = 3
    rules: SearchRules = field(default_factory=SearchRules)


def true_value(setting: RunConditions, policy: Policy, chosen: Chosen, seed: int) -> float:
    """Return the true value of the node that is chosen after a run; 0 for none."""
    run = SimulatedRun(setting, policy, seed)
    run.work()
    node = chosen(run.journal)
    return run.spots[node.id].value if node is not None else 0.0


class SimulatedRun:
    """One run. Landscape and policy have random numbers of their own.

    Attributes:
        journal: Its nodes.
        spots: The true place of each node.
        busy: Slots in use, times their time; `clock` is the time.
    """

    def __init__(self, setting: RunConditions, policy: Policy, seed: int) -> None:
        self.journal = Journal(Objective("value"))
        self.spots: dict[str, Spot] = {}
        self._setting = setting
        self._policy = policy
        self._seed = seed
        self._random = Random(f"landscape {seed}")
        self._ends: list[tuple[float, str]] = []
        self._clock = 0.0
        self._repetitions = Repetitions(self.journal, 0, setting.repeats)
        self._is_drafted = False
        self._is_tuned = False

    def work(self) -> None:
        """Make all evaluations."""
        self._fill()
        while self._ends:
            self._clock, node_id = heapq.heappop(self._ends)
            self._end(self.journal[node_id])
            self._fill()

    def _fill(self) -> None:
        setting = self._setting
        while len(self._ends) < setting.workers and len(self.journal) < setting.evaluations:
            choice = self._next()
            if choice is None:
                return
            step = len(self.journal) + 1
            is_over = self._is_tuned if choice.kind is NodeKind.SEED else self._is_drafted
            node = Node(
                f"n{step:04d}", step, choice.kind, 2 if is_over else 1, parent=choice.parent,
                seed=choice.seed or 0, artifacts=ScriptArtifact(f"step = {step}"),
            )  # fmt: skip
            self.journal.put(node)
            seconds = self._random.uniform(_SHORTEST, _LONGEST)
            heapq.heappush(self._ends, (self._clock + seconds, node.id))

    def _next(self) -> NodeChoice | None:
        rules, nodes = self._setting.rules, self.journal.until(2)
        view = StageView(self.journal, nodes, NodeKind.IMPROVE, None, rules.num_drafts)
        if self._repetitions.most:
            again = self._next_repetition(view)
            if again is not None:
                return again
        return self._policy(view, Random(f"{self._seed}:{len(self.journal)}"))

    def _next_repetition(self, view: StageView) -> NodeChoice | None:
        """Return a repetition of the best draft when all drafts are done, then those of races."""
        if drafts_missing(view) or self._is_tuned:
            return self._repetitions.during(2) if self._is_tuned else None
        waits_for = {NodeKind.DRAFT, NodeKind.SEED}
        if any(node.kind in waits_for for node in view.journal.running):
            return None
        self._is_drafted = True  # attempts from now on are of the second stage
        closing = self._repetitions.closing(1, 1, is_last=False)
        self._is_tuned = bool(view.journal.good) and not closing
        return closing[0] if closing else None

    def _end(self, node: Node) -> None:
        random, landscape = self._random, self._setting.landscape
        if node.parent is None:
            spot = landscape.draft(random)
        elif node.kind in {NodeKind.DEBUG, NodeKind.SEED}:
            spot = self.spots[node.parent]
        else:
            spot = landscape.child(self.spots[node.parent], random)
        self.spots[node.id] = spot
        chance = {NodeKind.SEED: 0.0, NodeKind.DEBUG: _REPAIR_FAILS}.get(node.kind, _FAILS)
        value = spot.value + random.gauss(0, self._setting.noise)
        if random.random() < chance:
            node = replace(node, status=NodeStatus.BUGGY, finished_at=self._clock)
        else:
            metric = Measurement({"": value})
            node = replace(node, status=NodeStatus.OK, finished_at=self._clock, metric=metric)
        self.journal.put(node)
