"""Policies that choose the next node: they read the journal and name a parent and a kind.

Where measurements scatter, policies read estimates of the true values of nodes. Measurements are a
node's true rank plus noise, and the true rank of a child is its parent's plus a step. Both are
Gaussian, so the expected true ranks follow from two passes over the tree: a lucky single value is
pulled towards its family, a mean of several hardly. The noise is that of the run beside the effects
of seeds, see `Journal.noise`. Where there is none, an estimate is the measurement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean, variance

from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus

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


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """A node to be made.

    Attributes:
        kind: Why.
        parent: Id of the node it is made from; None for a draft.
        name: The parameter to tune or the part to take away; empty lets the proposer choose.
        seed: Seed of a seed evaluation; None derives one from the run's.
        is_fresh: Whether that seed is to confirm the result of the run.
    """

    kind: NodeKind
    parent: str | None = None
    name: str = ""
    seed: int | None = None
    is_fresh: bool = False


@dataclass(frozen=True, slots=True)
class SearchRules:
    """Numbers a policy keeps to.

    Attributes:
        num_drafts: Drafts before anything else is tried.
        debug_prob: How often a failed node is repaired rather than a good one improved.
        max_debug_depth: Longest chain of attempts at repair.
        exploration: Weight of rarely tried nodes in `uct`.
    """

    num_drafts: int = 3
    debug_prob: float = 0.5
    max_debug_depth: int = 3
    exploration: float = 0.25


@dataclass(frozen=True, slots=True)
class StageView:
    """View of a policy: the nodes of a stage, and the node the stage began with.

    Attributes:
        journal: All nodes.
        nodes: Those of the stage, in order.
        growth: Kind of the children of a good node in this stage.
        base: Id of the best node of the stage before; None in the first stage.
        drafts: Drafts the stage begins with.
    """

    journal: Journal
    nodes: Sequence[Node]
    growth: NodeKind
    base: str | None
    drafts: int


Policy = Callable[[StageView, Random], NodeChoice | None]


def best_first(rules: SearchRules, view: StageView, random: Random) -> NodeChoice | None:
    """Choose drafts first. Then, by chance, repair a failed leaf, else grow the best node.

    The best node is the one with the best estimate, see `estimates`: of noisy measurements the
    highest is the luckiest. Where no noise was measured, that is the best by metric.
    """
    if drafts_missing(view):
        return NodeChoice(NodeKind.DRAFT)
    repairable = repairable_leaves(view, rules.max_debug_depth)
    if repairable and random.random() < rules.debug_prob:
        return NodeChoice(NodeKind.DEBUG, random.choice(repairable).id)
    grown = best_estimated(view.journal, good_nodes(view))
    if grown is not None:
        return NodeChoice(view.growth, grown.id)
    if repairable:
        return NodeChoice(NodeKind.DEBUG, random.choice(repairable).id)
    return _replacement(view)


def best_estimated(journal: Journal, nodes: Sequence[Node]) -> Node | None:
    """Return the node with the best estimate, the first of equals, None if none measured.

    A node that a judgement passed over is left out, unless there is no other.
    """
    if journal.noise is None:
        return journal.best(nodes)
    standing = journal.leaders(len(nodes), nodes)
    expected = estimates(journal, sorted(standing, key=lambda node: node.step))
    return max(standing, key=lambda node: expected[node.id], default=None)


def _replacement(view: StageView) -> NodeChoice | None:
    """Return a draft when nothing is left to repair or to grow, None while attempts run."""
    is_waiting = any(node.status is NodeStatus.RUNNING for node in view.nodes)
    return None if is_waiting else NodeChoice(NodeKind.DRAFT)


def uct(rules: SearchRules, view: StageView, random: Random) -> NodeChoice | None:
    """Choose by upper confidence bounds for trees: grow good nodes, and nodes hardly tried.

    The reward of a node is its place among the good nodes, from 0 for the worst to 1 for the best,
    so that it needs no scale; a failed one has 0. A node is worth the mean reward of its subtree,
    plus ``exploration * sqrt(ln(all visits) / visits)`` (Kocsis and Szepesvari 2006). Running nodes
    count as visits without reward.
    """
    if drafts_missing(view):
        return NodeChoice(NodeKind.DRAFT)
    candidates = [*good_nodes(view), *repairable_leaves(view, rules.max_debug_depth)]
    if not candidates:
        return _replacement(view)
    worth = _worth(view)
    total = math.log(len(view.nodes) + 1)
    scores = {
        node.id: reward / visits + rules.exploration * math.sqrt(total / visits)
        for node in candidates
        for visits, reward in [worth[node.id]]
    }
    best = max(scores.values())
    chosen = random.choice([node for node in candidates if scores[node.id] == best])
    return NodeChoice(NodeKind.DEBUG if chosen.has_failed else view.growth, chosen.id)


def policy_named(name: str, rules: SearchRules) -> Policy:
    """Return the policy called ``best_first`` or ``uct``: it chooses the next node of a view.

    Running nodes are in the view too. None says that nothing can begin before one of them ends.

    Raises:
        KeyError: If there is none with this name.
    """
    return partial({"best_first": best_first, "uct": uct}[name], rules)


def drafts_missing(view: StageView) -> bool:
    """Return whether the stage has not had its drafts yet."""
    return sum(node.kind is NodeKind.DRAFT for node in view.nodes) < view.drafts


def good_nodes(view: StageView) -> list[Node]:
    """Return the nodes to grow: good nodes of the stage, and the node it began with.

    Parts are taken away from that node alone: their effects could not be compared otherwise.
    """
    base = [view.journal[view.base]] if view.base is not None else []
    if base and view.growth is NodeKind.ABLATION:
        return base
    return [*base, *(node for node in view.nodes if node.is_good and not node.repeats)]


def repairable_leaves(view: StageView, max_depth: int) -> list[Node]:
    """Return failed nodes without a child. One that proposed nothing has nothing to repair."""
    return [
        node
        for node in view.nodes
        if node.has_failed
        and not view.journal.children(node.id)
        and not node.repeats
        and node.artifacts is not None
        and view.journal.debug_depth(node) < max_depth
    ]


def _worth(view: StageView) -> dict[str, tuple[int, float]]:
    """Return visits and reward of each node's subtree within the stage."""
    good = good_nodes(view)
    ranks = sorted({view.journal.rank(node.id) for node in good})
    places = {rank: n / max(len(ranks) - 1, 1) for n, rank in enumerate(ranks)}
    rewards = {node.id: places[view.journal.rank(node.id)] for node in good}
    nodes = [*([view.journal[view.base]] if view.base is not None else []), *view.nodes]
    worth = {node.id: (1, rewards.get(node.id, 0.0)) for node in nodes}
    for node in reversed(nodes):  # children come after their parents
        if node.parent in worth:
            visits, reward = worth[node.parent]
            more, gained = worth[node.id]
            worth[node.parent] = (visits + more, reward + gained)
    return worth
