"""Estimates of the true values of nodes, from noisy measurements of them and of their relatives.

Measurements are a node's true rank plus noise; the true rank of a child is its parent's plus a
step. Both are Gaussian, so the expected true ranks follow from two passes over the tree: a lucky
single value is pulled towards its family, a mean of several hardly. The noise is learnt from nodes
that were measured more than once. Where there is none, an estimate is the measurement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node

_LEAST_STEP = 0.05
"""Least variance of a step from parent to child, in variances of the noise."""
_FEWEST_STEPS = 3
_EXACT = 1e-9
"""Spread, relative to the values, below which repetitions count as equal."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of measurements, pooled over all nodes that were measured more than once.

    Attributes:
        variance: Its variance; 0 where nothing was repeated, or every repetition was equal.
        degrees: Degrees of freedom of the variance: repetitions.
    """

    variance: float = 0.0
    degrees: int = 0


def samples_of(journal: Journal, node: Node) -> list[float]:
    """Return the ranks of all measurements of a node, its own the first."""
    runs = [node, *journal.repetitions(node.id)]
    ranks = (journal.objective.rank(run.metric) for run in runs if run.is_good)
    return [rank for rank in ranks if rank > -math.inf]


def noise_of(samples: Iterable[Sequence[float]]) -> Noise:
    """Return the noise that the measurements of several nodes show."""
    squares, degrees = 0.0, 0
    for values in samples:
        if len(values) > 1:
            spread = variance(values)
            is_noise = spread > 0 and math.sqrt(spread) > _EXACT * max(map(abs, values))
            squares += spread * (len(values) - 1) * is_noise
            degrees += len(values) - 1
    return Noise(squares / degrees if degrees else 0.0, degrees)


def measured_noise(journal: Journal) -> Noise:
    """Return the noise of a run's measurements."""
    repeated = {node.repeats: None for node in journal.nodes if node.repeats}
    nodes = (journal[node_id] for node_id in repeated)
    return noise_of(samples_of(journal, node) for node in nodes)


def estimates(journal: Journal, nodes: Sequence[Node]) -> dict[str, float]:
    """Return the expected true rank of each good node of a list, parents before children.

    See `Journal.rank` for ranks. A node whose repetitions mostly failed keeps the worst.
    """
    ranks = {node.id: journal.rank(node.id) for node in nodes if node.is_good}
    noise = measured_noise(journal)
    known = [node_id for node_id, rank in ranks.items() if rank > -math.inf]
    if not noise.variance or not known:
        return ranks
    parents: dict[str, str | None] = {}
    for node_id in known:
        parent = journal[node_id].parent
        while parent is not None and parent not in parents:
            parent = journal[parent].parent
        parents[node_id] = parent
    samples = {node_id: samples_of(journal, journal[node_id]) for node_id in known}
    return ranks | _smoothed(samples, parents, noise.variance)


def _smoothed(
    samples: Mapping[str, Sequence[float]], parents: Mapping[str, str | None], noise: float
) -> dict[str, float]:
    """Return the expected true value of each node of a forest, parents before children."""
    means = {node: fmean(values) for node, values in samples.items()}
    step = _step_variance(samples, means, parents, noise)
    first, spread = _prior([means[node] for node, parent in parents.items() if not parent], noise)
    # What a node's own measurements and those of its descendants say: precision, weighted value.
    precision = {node: len(values) / noise for node, values in samples.items()}
    weighted = {node: sum(values) / noise for node, values in samples.items()}
    passed_up: dict[str, tuple[float, float]] = {}
    for node, parent in reversed(list(parents.items())):
        if parent is not None:
            weight = 1 / (1 / precision[node] + step)
            passed_up[node] = weight, weight * weighted[node] / precision[node]
            precision[parent] += weight
            weighted[parent] += passed_up[node][1]
    # Then the rest of the tree, from the roots down.
    for node, parent in parents.items():
        if parent is None:
            weight, value = 1 / spread, first
        else:
            own, own_value = passed_up[node]
            rest = precision[parent] - own
            weight, value = 1 / (1 / rest + step), (weighted[parent] - own_value) / rest
        precision[node] += weight
        weighted[node] += weight * value
    return {node: weighted[node] / precision[node] for node in parents}


def _step_variance(
    samples: Mapping[str, Sequence[float]],
    means: Mapping[str, float],
    parents: Mapping[str, str | None],
    noise: float,
) -> float:
    """Return the variance of true steps: that of measured ones less the noise of both ends."""
    pairs = [(node, parent) for node, parent in parents.items() if parent is not None]
    if len(pairs) < _FEWEST_STEPS:
        return noise / 4
    steps = [means[node] - means[parent] for node, parent in pairs]
    middle = fmean(steps)
    excess = (
        (step - middle) ** 2 - noise / len(samples[node]) - noise / len(samples[parent])
        for step, (node, parent) in zip(steps, pairs, strict=True)
    )
    return max(noise * _LEAST_STEP, fmean(excess))


def _prior(roots: Sequence[float], noise: float) -> tuple[float, float]:
    """Return mean and variance of the true values of first attempts."""
    spread = variance(roots) - noise if len(roots) > 1 else noise
    return fmean(roots), max(noise / 4, spread)
