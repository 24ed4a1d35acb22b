"""The choice of programs that are measured again: new bests, and their nearest rivals.

Where measurements scatter, the highest of many is a lucky one. A new best is measured again before
more is built on it; then it and the next best ones take turns until the difference is clear, or
they have had all their repetitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus
from taskweaver.treesearch.model.policy import NodeChoice
from taskweaver.treesearch.model.samples import difference

_RACING = 3
"""Programs that take part in a race: the best and those next to it."""


@dataclass(frozen=True, slots=True)
class Repetitions:
    """Chooses the next repetitions of a run, as a function of its journal.

    A program is repeated at most `most` times, with seeds that follow the run's `seed`. As many
    repetitions are made while a stage goes on, and twice as many more before it ends.
    """

    journal: Journal
    seed: int
    most: int

    def during(self, stage: int) -> NodeChoice | None:
        """Return the next repetition while a stage goes on; None where none is due.

        Nothing is due while it is unknown whether measurements scatter, or known that they do not.
        """
        if not self._is_noisy or self._had(stage) >= self.most:
            return None
        return self._race(self.journal.until(stage))

    def closing(self, stage: int, slots: int, *, is_last: bool) -> list[NodeChoice]:
        """Return the repetitions that a stage waits for now, at most one for each slot.

        The best is repeated in any case, so that it is known whether measurements scatter; its
        first repetition comes alone, for a program that gives the same value again is not repeated
        further. One that a judgement chose has all its repetitions, which may contradict it. The
        last stage races, since its best is the result of the run.
        """
        nodes = self.journal.until(stage)
        best = self.journal.best(nodes)
        left = _RACING * self.most - self._had(stage)
        if best is None or left <= 0:
            return []
        chosen = [self.journal[one.chosen] for one in self.journal.judgements[-1:]]
        begun = [one for one in chosen if one.stage <= stage and self._count(one) > 1]
        for node in (*begun, best):
            seeds = self._missing(node.id)
            if seeds:
                count = min(slots, left) if self._count(node) > 1 else 1
                return [_again(node, seed) for seed in seeds[:count]]
        again = self._race(nodes) if is_last and self._is_noisy else None
        return [again] if again is not None else []

    def at_limit(self) -> NodeChoice | None:
        """Return the next repetition of a run that makes no more attempts; None where none is due.

        Its best is not left a candidate, and races with its rivals as at the end of the last stage.
        """
        nodes = self.journal.nodes
        stage = max((node.stage for node in nodes), default=0)
        if not self._is_noisy or self._had(stage) >= _RACING * self.most:
            return None
        return self._race(nodes)

    @property
    def _is_noisy(self) -> bool:
        """Whether it is known that measurements scatter."""
        noise = self.journal.noise
        return noise is not None and noise.deviation > 0

    def _had(self, stage: int) -> int:
        """Return how many repetitions of a stage there are."""
        nodes = self.journal.nodes
        return sum(node.kind is NodeKind.SEED and node.stage == stage for node in nodes)

    def _race(self, nodes: Sequence[Node]) -> NodeChoice | None:
        """Return the next repetition of a race among the best nodes; None where none is due."""
        leaders = self.journal.leaders(_RACING, nodes)
        if leaders and self._count(leaders[0]) == 1:
            return self._turn(leaders[:1])
        for rival in leaders[1:]:
            pair = (leaders[0], rival)
            samples = (self.journal.samples(node.id) for node in pair)
            found = difference(self.journal.objective, *samples)
            racing = [node for node in pair if self._missing(node.id)]
            if found is not None and not found.is_clear and racing:
                return self._turn(racing)
        return None

    def _turn(self, racing: Sequence[Node]) -> NodeChoice | None:
        """Return the repetition of the program with the fewest; None while one of them runs."""
        repetitions = [run for node in racing for run in self.journal.repetitions(node.id)]
        if any(run.status is NodeStatus.RUNNING for run in repetitions):
            return None
        node = min(racing, key=self._count)
        seeds = self._missing(node.id)
        return _again(node, seeds[0]) if seeds else None

    def _count(self, node: Node) -> int:
        """Return how often a program was measured, or is being."""
        return 1 + len(self.journal.repetitions(node.id))

    def _missing(self, node_id: str) -> list[int]:
        """Return the seeds that a program can still be repeated with."""
        if self.journal.samples(node_id).is_deterministic:
            return []
        had = {node.seed for node in self.journal.repetitions(node_id)}
        seeds = (self.seed + n for n in range(1, self.most + 1))
        return [seed for seed in seeds if seed not in had]


def _again(node: Node, seed: int) -> NodeChoice:
    return NodeChoice(NodeKind.SEED, node.id, seed=seed)
