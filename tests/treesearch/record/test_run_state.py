"""A run as its log tells it, and what is said of its gains."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean

import pytest
from search_story import node, small_run

from taskweaver.treesearch.model.journal import Journal, Judgement
from taskweaver.treesearch.model.node import Measurement, Node, NodeKind, NodeStatus, Objective
from taskweaver.treesearch.record.run_statistics import (
    RunFacts,
    certainty,
    gain,
    gain_text,
    overruled,
    reached,
)
from taskweaver.treesearch.record.runlog import RunState, fold
from taskweaver.treesearch.reports.markdown_report import build_report
from taskweaver.treesearch.reports.run_data import paper_index


def begun(made: Node) -> Node:
    left_out = {"finished_at": None, "metric": None, "error": None, "phases": ()}
    return replace(made, status=NodeStatus.RUNNING, **left_out)


def told(*nodes: Node) -> RunState:
    objective = {"name": "accuracy", "maximize": True, "unit": ""}
    begin = {"t": "run", "objective": objective, "title": "An idea", "at": 1.0}
    return fold([begin, *({"t": "node", "node": one.to_dict()} for one in nodes)])


def test_a_node_that_had_not_finished_is_left_out_and_begins_anew() -> None:
    one, two = node(1, NodeKind.DRAFT, 0.5), node(2, NodeKind.DRAFT, 0.6)
    assert [found.id for found in told(begun(one), begun(two), two).journal.nodes] == ["n0002"]
    again = told(begun(one), begun(two), two, begun(one), one)
    assert [found.id for found in again.journal.nodes] == ["n0002", "n0001"]


def test_what_a_journal_keeps_agrees_with_its_nodes() -> None:
    journal, _ = small_run()
    for one in journal.nodes:
        again = [one, *journal.repetitions(one.id)]
        ranks = [journal.objective.rank(each.metric) for each in again if each.is_good]
        assert journal.rank(one.id) == (fmean(ranks) if ranks else -math.inf)
    depths = {one.id: journal.debug_depth(one) for one in journal.nodes}
    assert depths == {one.id: int(one.id == "n0003") for one in journal.nodes}
    journal.drop("n0013")
    journal.put(node(13, NodeKind.DRAFT, 0.7))
    assert journal.path("n0013") == [journal["n0013"]]


def good(step: int, value: float) -> Node:
    return node(step, NodeKind.DRAFT, value)


def seeds(parent: str, first: int, *values: float | None) -> list[Node]:
    return [
        node(first + n, NodeKind.SEED, value, parent=parent, seed=1 + n)
        for n, value in enumerate(values)
    ]


def test_what_fails_with_other_seeds_is_not_the_best() -> None:
    journal = Journal(Objective(), [good(1, 0.9), good(2, 0.6), *seeds("n0001", 3, None, 0.9)])
    assert journal.best() == journal["n0001"]
    journal.put(seeds("n0001", 5, None)[0])
    assert journal.best() == journal["n0002"]


def test_a_judgement_holds_until_the_chosen_one_falls() -> None:
    journal = Journal(Objective(), [good(1, 0.89), good(2, 0.88), good(3, 0.6)])
    journal.judge(Judgement(1, 3, ("n0001", "n0002", "n0003"), "n0002", "it is simpler"))
    assert journal.best() == journal["n0002"]
    assert overruled(journal)[0].endswith("it is simpler")
    for seed in seeds("n0002", 4, 0.2, 0.3):
        journal.put(seed)
    assert journal.best() == journal["n0001"]
    assert overruled(journal)[0].endswith("With other seeds it fell behind, and gave way.")


def test_further_data_sets_of_an_attempt_at_the_same_time_do_not_count() -> None:
    journal = Journal(Objective(), [replace(good(1, 0.5), metric=Measurement({"hard": 0.5}))])
    metric, problem = journal.comparable(Measurement({"hard": 0.5, "easy": 0.99}))
    assert (problem, metric.values) == ("", {"hard": 0.5})


OBJECTIVE = Objective("score", unit="points")


def measured(after: float, *again: float) -> Journal:
    """Return a run with a draft of 10 points and an improvement, which was repeated."""
    journal = Journal(OBJECTIVE)
    journal.put(node(1, NodeKind.DRAFT, 10.0))
    journal.put(node(2, NodeKind.IMPROVE, after, parent="n0001"))
    for step, value in enumerate(again, 3):
        journal.put(node(step, NodeKind.SEED, value, parent="n0002"))
    return journal


@pytest.mark.parametrize(
    ("journal", "gained", "sure"),
    [
        (measured(12.0), "+2 points (+20.0%)", "No program was measured twice"),
        (measured(12.0, 12.0), "+2 points (+20.0%)", "gave the very same figures (1 repetition)"),
        (measured(10.0, 10.0), "+0 points (+0.0%)", "n0002 reached exactly the same."),
        (measured(12.0, 11.9, 12.1), "+2.00 ± 0.12 points (+20.0%)", "scatters by 0.1 (standard"),
        (measured(12.0, 9.0, 10.5), "+0.5 ± 1.7 points (+5.0%), within the noise", "by 1.5 ("),
        (measured(8.0, 8.1), "-1.950 ± 0.087 points (-19.5%)", "by 0.071 ("),
    ],
)
def test_a_gain_has_its_standard_error_and_noise_is_called_so(
    journal: Journal, gained: str, sure: str
) -> None:
    found = gain(journal, journal["n0002"], journal["n0001"])
    assert gain_text(OBJECTIVE, found, 10.0) == gained
    assert sure in certainty(journal)


def test_report_and_paper_say_how_sure_the_best_is_and_its_cost() -> None:
    journal = measured(12.0, 9.0, 10.5)
    facts = RunFacts("run", "Idea", 0.0)
    report = build_report(journal, facts)
    first = report.partition("## What came out")[2].partition("\n\n|")[0]
    assert f"**{reached(journal, journal['n0002'])}**" in first
    assert "10.50 ± 0.87 points (n = 3)" in first
    assert "One measurement scatters by 1.5" in first
    assert "It cost 4 nodes" in first
    assert "within the noise" in report
    metric = paper_index(journal, facts)["best_node_data"]["metric"]
    assert (metric["mean"], metric["n"]) == (10.5, 3)
    assert metric["standard_error"] == pytest.approx(0.866, abs=0.001)
