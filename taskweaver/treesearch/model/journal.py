"""The journal: every node of a run, in order, as a tree, and questions about the nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from heapq import nlargest
from statistics import fmean
from typing import Any, Self

from taskweaver.treesearch.model.artifacts import artifact_files
from taskweaver.treesearch.model.node import Measurement, Node, NodeKind, NodeStatus, Objective
from taskweaver.treesearch.model.samples import (
    Difference,
    MeasurementNoise,
    NoisePool,
    Samples,
    difference,
)

_UNNAMED = {"", "all"}
"""Names of the data set of a figure that names none."""

_FEWEST_PAIRS = 3
"""Fresh seeds that decide on the result of a run."""

VERSION = 3
"""Of the exported form; 2 is the original's."""


class NodeTree:
    """Nodes by id, in order. One thread adds nodes and replaces them. Any may read."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._children: dict[str, list[str]] = {}
        self._repetitions: dict[str, list[str]] = {}
        self._proposed: dict[str, Node] = {}
        self._files: dict[str, Mapping[str, str]] = {}

    def drop(self, node_id: str) -> None:
        """Forget a node that did not finish. Its number is free again."""
        node = self._nodes.pop(node_id)
        self._files.pop(node_id, None)
        self._proposed.pop(node_id, None)
        if node.parent is not None:
            self._children[node.parent].remove(node_id)
        if node_id in self._repetitions.get(node.repeats, ()):
            self._repetitions[node.repeats].remove(node_id)

    def put(self, node: Node) -> None:
        """Add a node, or take its next state."""
        if node.id not in self._nodes and node.parent is not None:
            self._children.setdefault(node.parent, []).append(node.id)
        self._nodes[node.id] = node
        if node.finished_at is not None:
            self._proposed.pop(node.id, None)
        if node.repeats in self._nodes and not node.is_fresh:
            known = self._repetitions.setdefault(node.repeats, [])
            known += [node.id] * (node.id not in known)

    def note_proposal(self, node: Node) -> None:
        """Make the plan of a running node known, from any thread, before its task ends."""
        self._proposed[node.id] = node

    def as_proposed(self, node: Node) -> Node:
        """Return the newest state of a node. While it runs, with its name and plan by now.

        One that was dropped meanwhile is returned as it is.
        """
        return self._proposed.get(node.id) or self._nodes.get(node.id, node)

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self._nodes)

    def __contains__(self, node_id: object) -> bool:
        """Whether there is a node with this id."""
        return node_id in self._nodes

    def __getitem__(self, node_id: str) -> Node:
        """Return a node.

        Raises:
            KeyError: If there is none with this id.
        """
        return self._nodes[node_id]

    @property
    def attempts(self) -> int:
        """Number of nodes, seed evaluations not counted."""
        return sum(node.kind is not NodeKind.SEED for node in self.nodes)

    @property
    def nodes(self) -> list[Node]:
        """All nodes, in order."""
        return list(self._nodes.values())

    @property
    def finished(self) -> list[Node]:
        """The nodes that came to an end, other than by being cancelled."""
        open_ = {NodeStatus.RUNNING, NodeStatus.CANCELLED}
        return [node for node in self.nodes if node.status not in open_]

    @property
    def running(self) -> list[Node]:
        """The nodes whose tasks run."""
        return [node for node in self.nodes if node.status is NodeStatus.RUNNING]

    @property
    def good(self) -> list[Node]:
        """The nodes that ran, and measured something, those of seed evaluations too."""
        return [node for node in self.nodes if node.is_good]

    @property
    def buggy(self) -> list[Node]:
        """The nodes that failed."""
        return [node for node in self.nodes if node.has_failed]

    @property
    def refuted(self) -> dict[str, str]:
        """Ids of nodes whose findings a later review found untrue, each with the id of its node.

        A node whose own findings were found untrue refutes nothing.
        """
        found: dict[str, str] = {}
        refuting = [node for node in self.finished if node.refutes]
        for node in sorted(refuting, key=ended, reverse=True):
            if node.id not in found:
                found = dict.fromkeys(node.refutes, node.id) | found
        return found

    def of_stage(self, stage: int) -> list[Node]:
        """Return the nodes of a stage, in order. Seed evaluations are not counted."""
        return [
            node for node in self.nodes if node.stage == stage and node.kind is not NodeKind.SEED
        ]

    def until(self, stage: int) -> list[Node]:
        """Return the nodes of a stage and those before it, in order."""
        return [node for node in self._nodes.values() if node.stage <= stage]

    def children(self, node_id: str) -> list[Node]:
        """Return the nodes that were made from a node."""
        return [self._nodes[child] for child in tuple(self._children.get(node_id, ()))]

    def path(self, node_id: str) -> list[Node]:
        """Return a node and its ancestors, the draft first."""
        path: list[Node] = []
        next_: str | None = node_id
        while next_ is not None and next_ in self._nodes:
            path.append(self._nodes[next_])
            next_ = path[-1].parent
        return path[::-1]

    def files(self, node_id: str) -> Mapping[str, str]:
        """Return the text of a node's files by path, those it took over from its parent too."""
        unknown: list[Node] = []
        next_: str | None = node_id
        while next_ in self._nodes and next_ not in self._files:
            unknown.append(self._nodes[next_])
            next_ = unknown[-1].parent
        files = self._files.get(next_ or "", {})
        for node in reversed(unknown):
            files = {**files, **artifact_files(node.artifacts)}
            if node.finished_at is not None:  # what has ended does not change
                self._files[node.id] = files
        return files

    def debug_depth(self, node: Node) -> int:
        """Return the number of attempts at repair that end with this node."""
        depth = 0
        step: Node | None = node
        while step is not None and step.kind is NodeKind.DEBUG:
            depth += 1
            step = self._nodes.get(step.parent or "")
        return depth

    def repetitions(self, node_id: str) -> list[Node]:
        """Return the other measurements of a node's program: with seeds, and proposed again."""
        return [self._nodes[again] for again in tuple(self._repetitions.get(node_id, ()))]

    def fresh_runs(self, node_id: str) -> list[Node]:
        """Return the measurements of a node's program on seeds that chose nothing."""
        return [node for node in self.children(node_id) if node.is_fresh]


def ended(node: Node | None) -> float:
    """Return when a node ended, infinity for None."""
    return math.inf if node is None else (node.finished_at or 0.0)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Choice of a model among the best nodes: asked for once, and kept.

    Attributes:
        stage: Number of the stage that was over.
        after: Nodes there were, seed evaluations not counted.
        candidates: Ids of the nodes to choose from, the best by metric first.
        chosen: Id of the node that was chosen.
        reasoning: Why.
        is_spent: Whether the run was broken off then, and not asked about its goals.
    """

    stage: int
    after: int
    candidates: tuple[str, ...]
    chosen: str
    reasoning: str
    is_spent: bool = False

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Ids of the nodes the metric puts before the chosen one."""
        return self.candidates[: self.candidates.index(self.chosen)]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the judgement of a log entry."""
        said = data["chosen"], data["reasoning"], data.get("is_spent", False)
        return cls(data["stage"], data["after"], tuple(data["candidates"]), *said)


class Journal(NodeTree):
    """The nodes of a run. One thread adds them and replaces them by their next state. Any may read.

    Attributes:
        objective: The metric the run optimises.
        judgements: Choices among the best nodes, in order.
    """

    def __init__(self, objective: Objective, nodes: Iterable[Node] = ()) -> None:
        super().__init__()
        self.objective = objective
        self.judgements: list[Judgement] = []
        self._figures: dict[str, Measurement] = {}
        # Asked for once per node and decision: kept, so that a decision costs one look at each.
        self._ranks: dict[str, float] = {}
        self._first_good: Node | None = None
        self._noise = NoisePool(objective)
        for node in nodes:
            self.put(node)

    def drop(self, node_id: str) -> None:
        """Forget a node that did not finish. Its number is free again."""
        super().drop(node_id)
        self._ranks.pop(node_id, None)
        self._figures.pop(node_id, None)

    def put(self, node: Node) -> None:
        """Add a node, or take its next state."""
        super().put(node)
        self._ranks.pop(node.id, None)
        if node.finished_at is not None:
            self._figures.pop(node.id, None)
        if node.is_good and ended(node) < ended(self._first_good):
            self._first_good = node
        program = node.repeats or node.id
        if program in self and not node.is_fresh:  # fresh seeds choose nothing
            self._noise.put(program, _sampled(self._runs(program)).cells)
            if self.repetitions(program):
                self._ranks.clear()  # the effects of seeds are others now

    def note_figure(self, node_id: str, metric: Measurement) -> None:
        """Make the figure of a running node known, from any thread: it counts when that ends."""
        self._figures[node_id] = metric

    def figure(self, node_id: str) -> float | None:
        """Return the figure of a node that runs still, which may be found wrong, None for none."""
        metric = self._figures.get(node_id)
        return metric.value if metric else None

    def _runs(self, node_id: str) -> list[Node]:
        return [self._nodes[node_id], *self.repetitions(node_id)]

    @property
    def noise(self) -> MeasurementNoise | None:
        """Noise of the run's measurements, None while no program was measured repeatedly."""
        return self._noise.noise

    @property
    def is_noisy(self) -> bool:
        """Whether it is known that measurements scatter beside their seeds."""
        return self.noise is not None and self.noise.single > 0

    def samples(self, node_id: str) -> Samples:
        """Return all measurements of a node's program: its own, then those of repetitions."""
        return _sampled(self._runs(node_id), self.noise)

    def repeated_samples(self, node_id: str) -> Samples | None:
        """Return the repeated measurements of a node without its own, None without any tried."""
        runs = self.repetitions(node_id)
        return _sampled(runs, self.noise) if runs else None

    def fresh_samples(self, node_id: str) -> Samples:
        """Return the measurements of a node's program on seeds that chose nothing."""
        return _sampled(self.fresh_runs(node_id))

    def is_candidate(self, node_id: str) -> bool:
        """Return whether a node was measured once alone, where measurements scatter."""
        return self.is_noisy and self.samples(node_id).n == 1

    def rank(self, node_id: str) -> float:
        """Return a number that is higher for a better node (see `Objective.rank`).

        Of a node that was repeated with other seeds it is the mean: one lucky seed is not better.
        Effects of seeds are taken out, so that nodes of different seeds compare. It is the least
        if most runs fail.
        """
        rank = self._ranks.get(node_id)
        if rank is None:
            samples, rank = self.samples(node_id), -math.inf
            if samples.n > samples.failed:
                mean = fmean(samples.comparable)
                rank = mean if self.objective.maximize else -mean
            self._ranks[node_id] = rank
        return rank

    def best(self, among: Sequence[Node] | None = None) -> Node | None:
        """Return the first of the leaders of some nodes, or the result of the run.

        The result is what the search found, unless fresh seeds do not tell that from the baseline:
        within the noise, the earliest and simplest program carries the run. One or two seeds hardly
        tell anything, and what a judgement chose stays. None if none measured.
        """
        if among is not None:
            return next(iter(self.leaders(1, among)), None)
        found = self.found
        confirmed = self.confirmed(found)
        if found is None or confirmed is None or found.id in self._chosen:
            return found
        is_told = confirmed.is_likely or confirmed.pairs < _FEWEST_PAIRS
        return found if is_told else self.baseline

    @property
    def found(self) -> Node | None:
        """The result of the search alone: the highest node, and of equals the earliest.

        Equal are programs that were measured repeatedly, and are within one standard error of the
        highest (the rule of Breiman et al. 1984 for choosing the simplest of equals). A node that a
        judgement chose is taken as it is.
        """
        highest = next(iter(self.leaders(1)), None)
        if highest is None or highest.id in self._chosen or not self.repetitions(highest.id):
            return highest
        earlier = [node for node in self.leaders(len(self)) if node.step < highest.step]
        for node in sorted(earlier, key=lambda node: node.step):
            if not self.repetitions(node.id) or self.rank(node.id) == -math.inf:
                continue
            gain = difference(self.objective, self.samples(highest.id), self.samples(node.id))
            if gain is not None and gain.error is not None and abs(gain.gain) <= gain.error:
                return node
        return highest

    @property
    def _chosen(self) -> set[str]:
        return {one.chosen for one in self.judgements if self.holds(one)}

    @property
    def baseline(self) -> Node | None:
        """The first draft that works: every gain of the whole run is a gain over it."""
        drafts = (node for node in self.nodes if node.kind is NodeKind.DRAFT)
        return next((node for node in drafts if node.is_good), None)

    def confirmed(self, node: Node | None) -> Difference | None:
        """Return the gain of a node over the baseline on fresh seeds, None where there are none."""
        base = self.baseline
        if node is None or base is None:
            return None
        pair = self.fresh_samples(node.id), self.fresh_samples(base.id)
        return difference(self.objective, *pair)

    def best_until(self, stage: int) -> Node | None:
        """Return the best node of a stage and those before it (see `best`)."""
        return self.best(self.until(stage))

    def leaders(self, count: int, among: Sequence[Node] | None = None) -> list[Node]:
        """Return the best nodes, the best first: by metric, of equals the earliest.

        Those that a judgement passed over are left out, unless there are no others.
        """
        nodes = self.nodes if among is None else among
        good = [node for node in nodes if node.is_good and not node.repeats]
        over = {name for one in self.judgements if self.holds(one) for name in one.passed_over}
        standing = [node for node in good if node.id not in over] or good
        return nlargest(count, standing, key=lambda node: (self.rank(node.id), -node.step))

    def judge(self, judgement: Judgement) -> None:
        """Add a judgement, which answers every question for the best node from now on.

        Raises:
            KeyError: If one of its candidates is no node.
            ValueError: If it chooses something else than a candidate.
        """
        for node_id in judgement.candidates:
            self[node_id]
        if judgement.chosen not in judgement.candidates:
            raise ValueError(f"{judgement.chosen!r} is no candidate")
        self.judgements.append(judgement)

    def holds(self, judgement: Judgement) -> bool:
        """Return whether a node that was chosen is still as good as the first by metric.

        Its repetitions come after the judgement, and may show that it was only lucky.
        """
        first, chosen = self[judgement.candidates[0]], self[judgement.chosen]
        if not self.repetitions(chosen.id):
            return True
        once = self.objective.rank
        ranks = [once(run.metric) for run in (first, *self.repetitions(first.id)) if run.is_good]
        noise = max(max(ranks) - min(ranks), once(first.metric) - once(chosen.metric))
        return self.rank(first.id) - self.rank(chosen.id) <= noise

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets every attempt is compared on: those of the first that worked."""
        metric = self._first_good.metric if self._first_good else None
        return tuple(metric.values) if metric else ()

    def comparable(self, metric: Measurement) -> tuple[Measurement, str]:
        """Return the compared part of a measurement, and why it is not comparable, empty if it is.

        A mean over other data sets than those of the run is no better and no worse: leaving the
        hard one out would win.
        """
        datasets = self.datasets
        if len(datasets) == len(metric.values) == 1 and _UNNAMED & {*datasets, *metric.values}:
            (value,) = metric.values.values()
            metric = Measurement({datasets[0]: value}, metric.details)
        missing = [name or "one figure for all" for name in datasets if name not in metric.values]
        if not missing:
            return (metric.over(datasets) if datasets else metric), ""
        measured = ", ".join(name or "one figure for all" for name in metric.values)
        return metric, f"the run compares {', '.join(missing)} too, and only measured: {measured}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, the form of ``journal.json``."""
        return {
            "__version": str(VERSION),
            "objective": asdict(self.objective),
            "nodes": [node.to_dict() for node in self.nodes],
            "node2parent": {node.id: node.parent for node in self.nodes if node.parent is not None},
            "judgements": [asdict(judgement) for judgement in self.judgements],
        }


def _sampled(runs: Sequence[Node], noise: MeasurementNoise | None = None) -> Samples:
    """Return the measurements of runs of one program."""
    good = [(run.seed, run.value) for run in runs if run.is_good and run.value is not None]
    seeds, values = tuple(seed for seed, _ in good), tuple(value for _, value in good)
    return Samples(values, sum(run.has_failed for run in runs), noise, seeds)
