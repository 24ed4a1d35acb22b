"""Estimates of the true values of nodes, from noisy measurements of them and of their relatives.

Measurements are a node's true rank plus noise; the true rank of a child is its parent's plus a
step. Both are Gaussian, so the expected true ranks follow from two passes over the tree: a lucky
single value is pulled towards its family, a mean of several hardly. The noise is that of the run
beside the effects of seeds, see `Journal.noise`. Where there is none, an estimate is the
measurement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node

_LEAST = 0.05
"""Least variance of a step from parent to child, and of a node's noise, in those of the noise."""
_FEWEST_STEPS = 3


def estimates(journal: Journal, nodes: Sequence[Node]) -> dict[str, float]:
    """Return the expected true rank of each good node of a list, parents before children.

    See `Journal.rank` for ranks. A node whose repetitions mostly failed keeps the worst.
    """
    ranks = {node.id: journal.rank(node.id) for node in nodes if node.is_good}
    known = [node_id for node_id, rank in ranks.items() if rank > -math.inf]
    noise = journal.noise
    if noise is None or not noise.single or not known:
        return ranks
    parents: dict[str, str | None] = {}
    for node_id in known:
        parent = journal[node_id].parent
        while parent is not None and parent not in parents:
            parent = journal[parent].parent
        parents[node_id] = parent
    sign = 1 if journal.objective.maximize else -1
    samples = {id_: [sign * value for value in journal.samples(id_).comparable] for id_ in known}
    variances = {id_: noise.at(fmean(v), noise.single) ** 2 for id_, v in samples.items()}
    usual = fmean(variances.values())
    if not usual:  # all values are zero, and the noise grows with them
        return ranks
    noises = {id_: max(found, _LEAST * usual) for id_, found in variances.items()}
    return ranks | _smoothed(samples, parents, noises)


def _smoothed(
    samples: Mapping[str, Sequence[float]],
    parents: Mapping[str, str | None],
    noises: Mapping[str, float],
) -> dict[str, float]:
    """Return the expected true value of each node of a forest, parents before children.

    `noises` are the variances of one measurement of each node.
    """
    means = {node: fmean(values) for node, values in samples.items()}
    # What a node's own measurements and those of its descendants say: precision, weighted value.
    precision = {node: len(values) / noises[node] for node, values in samples.items()}
    weighted = {node: sum(values) / noises[node] for node, values in samples.items()}
    noise = fmean(noises.values())
    step = _step_variance(means, {node: 1 / p for node, p in precision.items()}, parents, noise)
    first, spread = _prior([means[node] for node, parent in parents.items() if not parent], noise)
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
    means: Mapping[str, float],
    errors: Mapping[str, float],
    parents: Mapping[str, str | None],
    noise: float,
) -> float:
    """Return the variance of true steps: that of measured ones less the error of both ends."""
    pairs = [(node, parent) for node, parent in parents.items() if parent is not None]
    if len(pairs) < _FEWEST_STEPS:
        return noise / 4
    steps = [means[node] - means[parent] for node, parent in pairs]
    middle = fmean(steps)
    excess = (
        (step - middle) ** 2 - errors[node] - errors[parent]
        for step, (node, parent) in zip(steps, pairs, strict=True)
    )
    return max(noise * _LEAST, fmean(excess))


def _prior(roots: Sequence[float], noise: float) -> tuple[float, float]:
    """Return mean and variance of the true values of first attempts."""
    spread = variance(roots) - noise if len(roots) > 1 else noise
    return fmean(roots), max(noise / 4, spread)
