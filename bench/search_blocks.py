"""How often the statistics of a search find true steps, and call noise one.

Runs are simulated: programs of known values, measured with seeds that have effects of their own,
and repeated as a search repeats programs. *Steps* are programs that are each better than the one
before by 0.5 on every seed; *equal* programs differ by noise alone. *Held* is the share of 95 %
intervals, on fresh seeds, that contain the true difference. *Repeats* are those until a difference
is clear, on common seeds; the baseline ignores that the seed is common (Welch's comparison of two
means, as this package had it). Run with ``python -m bench.search_blocks [RUNS]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, sqrt
from random import Random
from statistics import fmean, stdev

from bench.common import sized
from taskweaver.treesearch.model.artifacts import ScriptArtifact
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Measurement, Node, NodeKind, NodeStatus, Objective
from taskweaver.treesearch.model.policy import NodeChoice
from taskweaver.treesearch.model.repetitions import Repetitions
from taskweaver.treesearch.model.samples import Samples, difference
from taskweaver.treesearch.record.run_statistics import gain

RUNS = sized(100, 5)
MOST = 3
OFFSETS = (-2.0, 1.0, 0.0, 1.0)


@dataclass(slots=True)
class Table:
    """True values of programs, effects of seeds, and the noise beside both."""

    values: tuple[float, ...]
    effects: Callable[[int], float]
    residual: float
    random: Random

    def measure(self, program: int, seed: int) -> float:
        """Return one measurement."""
        noise = self.random.gauss(0, self.residual)
        return self.values[program] + self.effects(seed) + noise


def searched(table: Table, most: int = MOST) -> Journal:
    """Return a run: a draft, its repetitions, then one program after the other, then the end."""
    journal = Journal(Objective())
    repetitions = Repetitions(journal, 0, most)
    programs: dict[str, int] = {}

    def put(choice: NodeChoice, program: int, stage: int) -> None:
        step = len(journal) + 1
        id_ = f"n{step:04d}"
        value = table.measure(program, choice.seed or 0)
        journal.put(
            Node(
                id_, step, choice.kind, stage, parent=choice.parent, seed=choice.seed or 0,
                is_fresh=choice.is_fresh, status=NodeStatus.OK, metric=Measurement({"": value}),
                artifacts=ScriptArtifact(f"program = {program}"), started_at=step, finished_at=step,
            )
        )  # fmt: skip
        programs[id_] = program

    def repeat(next_: Callable[[], NodeChoice | None], stage: int) -> None:
        while (choice := next_()) is not None:
            put(choice, programs[choice.parent or ""], stage)

    put(NodeChoice(NodeKind.DRAFT), 0, 1)
    repeat(lambda: next(iter(repetitions.closing(1, 1, is_last=False)), None), 1)
    for program in range(1, len(table.values)):
        parent = next(id_ for id_, known in programs.items() if known == program - 1)
        put(NodeChoice(NodeKind.IMPROVE, parent), program, 2)
        repeat(lambda: repetitions.during(2), 2)
    repeat(lambda: next(iter(repetitions.closing(2, 1, is_last=True)), None), 2)
    repeat(lambda: next(iter(repetitions.confirming(1)), None), 2)
    return journal


def steps_found(journal: Journal) -> int:
    """Return how many programs are clearly better than the one they were made from."""
    made = [node for node in journal.nodes if node.kind is NodeKind.IMPROVE]
    gains = (gain(journal, node, journal[node.parent or ""]) for node in made)
    return sum(one is not None and one.gain > 0 and one.is_clear for one in gains)


def table(number: int, *, step: float, residual: float, seed: int, spread: float = 0.0) -> Table:
    """Return so many programs, better by a step each; without a spread the seeds have `OFFSETS`."""
    random = Random(f"effects {seed}")
    known: dict[int, float] = {}

    def effect(which: int) -> float:
        drawn = random.gauss(0, spread) if spread else OFFSETS[which % len(OFFSETS)]
        return known.setdefault(which, drawn)

    values = tuple(step * program for program in range(number))
    return Table(values, effect, residual, Random(f"noise {seed}"))


def held(runs: int, residual: float) -> float:
    """Return the share of runs whose interval on fresh seeds holds the true gain."""
    good = []
    for seed in range(runs):
        made = table(12, step=0.5, residual=residual, seed=seed, spread=3.0)
        journal = searched(made)
        found, base = journal.found, journal.baseline
        confirmed = journal.confirmed(found)
        if found is None or base is None or confirmed is None or confirmed.interval is None:
            continue
        true = 0.5 * int(str(getattr(found.artifacts, "code", "")).rpartition("=")[2])
        low, high = confirmed.interval
        good.append(low <= true <= high)
    return fmean(good)


def repeats_until_clear(runs: int, *, is_paired: bool) -> float:
    """Return how many measurements of each of two programs make a gain of 1 clear, on average."""
    counts = []
    for seed in range(runs):
        made = table(2, step=1.0, residual=0.5, seed=seed, spread=1.2)
        mine, theirs = list[float](), list[float]()
        while len(mine) < 200:
            theirs.append(made.measure(0, len(theirs)))
            mine.append(made.measure(1, len(mine)))
            if len(mine) > 1 and _is_clear(mine, theirs, is_paired=is_paired):
                break
        counts.append(len(mine))
    return fmean(counts)


def _is_clear(mine: list[float], theirs: list[float], *, is_paired: bool) -> bool:
    if is_paired:
        found = difference(Objective(), Samples(tuple(mine)), Samples(tuple(theirs)))
        return found is not None and found.is_likely
    error = hypot(stdev(mine), stdev(theirs)) / sqrt(len(mine))
    return abs(fmean(mine) - fmean(theirs)) > 2 * error


def run(runs: int = RUNS) -> dict[str, float]:
    """Return the figures of all conditions."""
    figures: dict[str, float] = {}
    for residual in (0.0, 0.05, 0.1):
        made = [table(20, step=0.5, residual=residual, seed=seed) for seed in range(runs)]
        figures[f"steps found of 19, residual {residual:g}"] = fmean(
            steps_found(searched(one)) for one in made
        )
    for residual in (0.0, 0.5, 2.0):
        equal = [table(25, step=0.0, residual=residual, seed=seed) for seed in range(runs)]
        journals = [searched(one) for one in equal]
        figures[f"equal programs called better, residual {residual:g}"] = fmean(
            map(steps_found, journals)
        )
        figures[f"runs that return another one than the first, residual {residual:g}"] = fmean(
            journal.best() is not journal.baseline for journal in journals
        )
    for residual in (0.1, 1.0):
        figures[f"intervals held, residual {residual:g}"] = held(runs, residual)
    figures["repeats until clear, common seeds"] = repeats_until_clear(runs, is_paired=True)
    figures["repeats until clear, baseline"] = repeats_until_clear(runs, is_paired=False)
    return figures


if __name__ == "__main__":
    for name, figure in run(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS).items():
        print(f"{name:60} {figure:8.3f}")
