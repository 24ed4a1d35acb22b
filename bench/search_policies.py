"""True value of the node that a search returns after 50 evaluations on invented landscapes.

The policies are the real ones, with the real journal; `bench.simulation` has the
landscapes. Baselines of the same runs: random choice, and greedy choice by the highest measurement
(AIDE's policy). Repetitions count as evaluations; only `best_first` makes any, of the best draft
and of new bests. The node with the highest mean is returned, as by a run; `estimate` is
`best_first` with the best estimate returned instead. Run with
``python -m bench.search_policies [SEEDS]``; 100 seeds take about three minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from random import Random
from statistics import fmean, stdev

from bench.common import sized
from bench.simulation.landscapes import LANDSCAPES
from bench.simulation.simulated_run import Chosen, RunConditions, true_value
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.treesearch.model.policy import (
    NodeChoice,
    Policy,
    SearchRules,
    StageView,
    best_estimated,
    drafts_missing,
    good_nodes,
    policy_named,
    repairable_leaves,
)

SEEDS, EVALUATIONS = sized((100, 50), (2, 12))
NOISES = (0.0, 0.03, 0.1)
WORKERS = (1, 4)
RULES = SearchRules()


def baseline(*, is_greedy: bool, rules: SearchRules, view: StageView, random: Random) -> NodeChoice:
    """Choose as AIDE does: drafts, repairs by chance, else the best node, or any good one."""
    if drafts_missing(view):
        return NodeChoice(NodeKind.DRAFT)
    failed = repairable_leaves(view, rules.max_debug_depth)
    good = good_nodes(view)
    if failed and (not good or random.random() < rules.debug_prob):
        return NodeChoice(NodeKind.DEBUG, random.choice(failed).id)
    chosen = view.journal.best(good) if is_greedy else random.choice(good) if good else None
    return NodeChoice(view.growth, chosen.id) if chosen else NodeChoice(NodeKind.DRAFT)


def highest(journal: Journal) -> Node | None:
    """Return the node with the best mean measurement."""
    return journal.best()


def estimated(journal: Journal) -> Node | None:
    """Return the node with the best estimate."""
    return best_estimated(journal, [n for n in journal.good if n.kind is not NodeKind.SEED])


def chosen_by(is_greedy: bool) -> Policy:  # noqa: FBT001
    """Return a baseline as a policy; `is_greedy` chooses the highest measurement."""

    def policy(view: StageView, random: Random) -> NodeChoice:
        return baseline(is_greedy=is_greedy, rules=RULES, view=view, random=random)

    return policy


POLICIES: Mapping[str, tuple[Policy, Chosen, int]] = {
    "random": (chosen_by(is_greedy=False), highest, 0),
    "greedy": (chosen_by(is_greedy=True), highest, 0),
    "uct": (policy_named("uct", RULES), highest, 0),
    "best_first": (policy_named("best_first", RULES), highest, 3),
    "estimate": (policy_named("best_first", RULES), estimated, 3),
}


def cells() -> Mapping[str, RunConditions]:
    """Return the conditions that are measured, by name."""
    return {
        f"{name} w{workers} n{noise:g}": RunConditions(landscape, noise, workers, EVALUATIONS)
        for name, landscape in LANDSCAPES.items()
        for workers in WORKERS
        for noise in NOISES
    }


def run(seeds: int = SEEDS) -> dict[str, float]:
    """Return mean true value and standard error for each policy and condition."""
    figures: dict[str, float] = {}
    for policy_name, (policy, chosen, repeats) in POLICIES.items():
        for cell, setting in cells().items():
            setting = replace(setting, repeats=repeats)
            values = [true_value(setting, policy, chosen, seed) for seed in range(seeds)]
            figures[f"{policy_name} {cell}"] = fmean(values)
            figures[f"{policy_name} {cell} se"] = stdev(values) / sqrt(seeds)
    return figures


def show(figures: Mapping[str, float]) -> None:
    """Print a table of the conditions by policy."""
    print(f"true value returned after {EVALUATIONS} evaluations, +- standard error")
    print(f"{'landscape, workers, noise':28}" + "".join(f"{name:>14}" for name in POLICIES))
    for cell in cells():
        row = (f"{figures[f'{p} {cell}']:.3f}+-{figures[f'{p} {cell} se']:.3f}" for p in POLICIES)
        print(f"{cell:28}" + "".join(f"{text:>14}" for text in row))
    ratio = figures["best_first families w1 n0.1"] / figures["greedy families w1 n0.1"]
    print(f"best_first / greedy, families, 1 worker, noise 0.1: {ratio:.2f}")
    print(
        "goals, families: noise 0.1 >= 0.60 with 1 worker, >= 0.59 with 4; noise 0: greedy - 0.02"
    )


if __name__ == "__main__":
    show(run(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS))
