"""Searches on invented landscapes: true values, determinism, and what noise does to policies."""

from __future__ import annotations

from functools import partial
from random import Random
from statistics import fmean

import pytest

from bench.simulation.landscapes import LANDSCAPES
from bench.simulation.simulated_run import RunConditions, SimulatedRun, true_value
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind
from taskweaver.treesearch.model.policy import (
    NodeChoice,
    SearchRules,
    StageView,
    drafts_missing,
    good_nodes,
    policy_named,
)

RULES = SearchRules()
BEST_FIRST = policy_named("best_first", RULES)


@pytest.mark.parametrize("name", LANDSCAPES)
@pytest.mark.parametrize("workers", [1, 4])
def test_a_run_is_a_function_of_its_seed_and_has_as_many_evaluations_as_wanted(
    name: str, workers: int
) -> None:
    setting = RunConditions(LANDSCAPES[name], 0.1, workers, evaluations=20)
    runs = [SimulatedRun(setting, BEST_FIRST, seed) for seed in (1, 1, 2)]
    for run in runs:
        run.work()
        assert len(run.journal) == 20
        assert not run.journal.running
        assert all(0 <= spot.value <= 1 for spot in run.spots.values())
        assert sum(node.kind is NodeKind.DRAFT for node in run.journal.nodes) == RULES.num_drafts
    stories = [[(n.parent, n.kind, n.value) for n in run.journal.nodes] for run in runs]
    assert stories[0] == stories[1] != stories[2]


def test_without_noise_one_repetition_is_enough() -> None:
    run = SimulatedRun(RunConditions(LANDSCAPES["families"], evaluations=20), BEST_FIRST, 3)
    run.work()
    assert sum(node.kind is NodeKind.SEED for node in run.journal.nodes) == 1


def greedy(_: SearchRules, view: StageView, __: Random) -> NodeChoice:
    """Grow the node with the highest measurement."""
    best = None if drafts_missing(view) else view.journal.best(good_nodes(view))
    return NodeChoice(view.growth, best.id) if best else NodeChoice(NodeKind.DRAFT)


def test_under_noise_best_first_returns_more_than_the_highest_measurements() -> None:
    """The gap is seven times its standard error with twenty runs each."""
    setting = RunConditions(LANDSCAPES["families"], 0.1)
    plain = RunConditions(LANDSCAPES["families"], 0.1, repeats=0)

    def best(journal: Journal) -> Node | None:
        return journal.best()

    seeds = range(20)
    ours = fmean(true_value(setting, BEST_FIRST, best, seed) for seed in seeds)
    others = fmean(true_value(plain, partial(greedy, RULES), best, seed) for seed in seeds)
    assert ours > others + 0.04
