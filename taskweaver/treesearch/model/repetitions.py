"""The choice of programs that are measured again: new bests, and their nearest rivals.

Where measurements scatter, the highest of many is a lucky one. A new best is measured again before
more is built on it; then it and the next best ones take turns until the difference is clear, or
they have had all their repetitions. Programs are repeated with the seeds that their rivals have,
since differences are taken over common seeds. At the end, fresh seeds confirm the result.
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
_FRESH = 1_000
"""Distance of fresh seeds from those of the search, which never get as far."""


@dataclass(frozen=True, slots=True)
class Repetitions:
    """Chooses the next repetitions of a run, as a function of its journal.

    A program is repeated at most `most` times, with the seeds of rivals or those that follow the
    run's `seed`. As many repetitions are made while a stage goes on, and twice as many more before
    it ends.
    """

    journal: Journal
    seed: int
    most: int

    def during(self, stage: int) -> NodeChoice | None:
        """Return the next repetition while a stage goes on, None where none is due.

        Nothing is due while it is unknown whether measurements scatter, or known that they do not.
        """
        if not self.journal.is_noisy or self._had(stage) >= self.most:
            return None
        nodes = self.journal.until(stage)
        return self._second(nodes) or self._race(nodes)

    def closing(self, stage: int, slots: int, *, is_last: bool) -> list[NodeChoice]:
        """Return the repetitions that a stage waits for now, at most one for each slot.

        The best is repeated in any case, so that it is known whether measurements scatter; its
        first repetition comes alone, for a program that gives the same value again is not repeated
        further. One that a judgement chose has all its repetitions, which may contradict it. A
        second program shows whether seeds are what scatters. The last stage races, since its best
        is the result of the run.
        """
        nodes = self.journal.until(stage)
        best = self.journal.best(nodes)
        left = _RACING * self.most - self._had(stage)
        if best is None or left <= 0:
            return []
        chosen = [self.journal[one.chosen] for one in self.journal.judgements[-1:]]
        begun = [one for one in chosen if one.stage <= stage and self._count(one) > 1]
        for node in (*begun, best):
            seeds = self._missing(node)
            if seeds:
                count = min(slots, left) if self._count(node) > 1 else 1
                return [_again(node, seed) for seed in seeds[:count]]
        again = self._second(nodes)
        if again is None and is_last and self.journal.is_noisy:
            again = self._race(nodes)
        return [again] if again is not None else []

    def at_limit(self) -> NodeChoice | None:
        """Return the next repetition of a run that makes no more attempts, None where none is due.

        Its best is not left a candidate, and races with its rivals as at the end of the last stage.
        """
        nodes = self.journal.nodes
        stage = max((node.stage for node in nodes), default=0)
        if not self.journal.is_noisy or self._had(stage) >= _RACING * self.most:
            return None
        return self._race(nodes)

    def confirming(self, slots: int) -> list[NodeChoice]:
        """Return the measurements on fresh seeds that the end of a run waits for now.

        The result of the search and the first draft have as many as a race has at most. Where
        nothing scatters there are none; where that is unknown, the first pair may show it.
        """
        found, base, noise = self.journal.found, self.journal.baseline, self.journal.noise
        is_exact = noise is not None and not noise.deviation
        if not self.most or found is None or base is None or found is base or is_exact:
            return []
        had = {node.id: self.journal.fresh_runs(node.id) for node in (base, found)}
        seeds = [self.seed + _FRESH + n for n in range(self.most + 1)]
        if noise is None:
            runs = [*had[base.id], *had[found.id]]
            is_open = any(run.status is NodeStatus.RUNNING for run in runs) or len(runs) < 2
            values = {self.journal[run.repeats].value == run.value for run in runs if run.is_good}
            seeds = seeds[:1] if is_open or values == {True} else seeds
        return [
            NodeChoice(NodeKind.SEED, node.id, seed=seed, is_fresh=True)
            for seed in seeds
            for node in (base, found)
            if seed not in {run.seed for run in had[node.id]}
        ][:slots]

    def _had(self, stage: int) -> int:
        """Return how many repetitions of a stage there are."""
        nodes = [node for node in self.journal.nodes if node.stage == stage]
        return sum(node.kind is NodeKind.SEED and not node.is_fresh for node in nodes)

    def _second(self, nodes: Sequence[Node]) -> NodeChoice | None:
        """Return a repetition of a second program with the seeds of the first, None if none is due.

        It is due while it is unknown whether seeds are what scatters.
        """
        noise = self.journal.noise
        if noise is None or not noise.deviation or noise.residual is not None:
            return None
        leaders = sorted(self.journal.leaders(_RACING, nodes), key=self._count, reverse=True)
        for node in leaders[1:]:
            if {*self._missing(node, leaders[0])} & {*self.journal.samples(leaders[0].id).seeds}:
                return self._turn([node], leaders[:1])
        return None

    def _race(self, nodes: Sequence[Node]) -> NodeChoice | None:
        """Return the next repetition of a race among the best nodes, None where none is due."""
        leaders = self.journal.leaders(_RACING, nodes)
        if leaders and self._count(leaders[0]) == 1:
            return self._turn(leaders[:1], leaders[1:])
        for rival in leaders[1:]:
            pair = (leaders[0], rival)
            samples = (self.journal.samples(node.id) for node in pair)
            found = difference(self.journal.objective, *samples)
            racing = [node for node in pair if self._missing(node, *pair)]
            if (found is None or not found.is_clear) and racing:
                return self._turn(racing, pair)
        return None

    def _turn(self, racing: Sequence[Node], rivals: Sequence[Node]) -> NodeChoice | None:
        """Return the repetition of the program with the fewest, None while one of them runs."""
        both = (*racing, *rivals)
        repetitions = [run for node in both for run in self.journal.repetitions(node.id)]
        if any(run.status is NodeStatus.RUNNING for run in repetitions):
            return None
        node = min(racing, key=self._count)
        seeds = self._missing(node, *rivals)
        return _again(node, seeds[0]) if seeds else None

    def _count(self, node: Node) -> int:
        """Return how often a program was measured, or is being."""
        return 1 + len(self.journal.repetitions(node.id))

    def _missing(self, node: Node, *rivals: Node) -> list[int]:
        """Return the seeds that a program can still be repeated with, those of rivals first.

        Where nothing scatters beside the seeds, one repetition shows that this holds for it too.
        """
        noise, repetitions = self.journal.noise, self.journal.repetitions(node.id)
        is_exact = noise is not None and noise.residual == 0
        most = min(self.most, 1) if is_exact else self.most
        if len(repetitions) >= most or self.journal.samples(node.id).is_deterministic:
            return []
        had = {node.seed, *(run.seed for run in repetitions)}
        theirs = [seed for rival in rivals for seed in self.journal.samples(rival.id).seeds]
        own = [self.seed + n for n in range(1, self.most + 1)]
        seeds = [seed for seed in dict.fromkeys([*theirs, *own]) if seed not in had]
        return seeds[: most - len(repetitions)]


def _again(node: Node, seed: int) -> NodeChoice:
    return NodeChoice(NodeKind.SEED, node.id, seed=seed)
