"""A run as its log tells it: the same nodes in the same order as while it went on."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean
from typing import Any

from search_story import node, small_run

from taskweaver.treesearch.journal import Journal
from taskweaver.treesearch.node import Node, NodeKind, NodeStatus
from taskweaver.treesearch.state import RunState, fold


def begun(made: Node) -> Node:
    return replace(
        made, status=NodeStatus.RUNNING, finished_at=None, metric=None, error=None, phases=()
    )


def told(*nodes: Node) -> RunState:
    objective = {"name": "accuracy", "maximize": True, "unit": ""}
    entries: list[dict[str, Any]] = [
        {"t": "run", "objective": objective, "title": "An idea", "at": 1.0}
    ]
    entries += [{"t": "node", "node": one.to_dict()} for one in nodes]
    state = fold(entries)
    assert state is not None
    return state


def test_nodes_stand_in_the_order_they_were_begun_in() -> None:
    one, two = node(1, NodeKind.DRAFT, 0.5), node(2, NodeKind.DRAFT, 0.6)
    state = told(begun(one), begun(two), two, one)
    assert [found.id for found in state.journal.nodes] == ["n0001", "n0002"]
    assert state.title == "An idea"


def test_a_node_that_had_not_finished_is_left_out_and_begins_anew() -> None:
    one, two = node(1, NodeKind.DRAFT, 0.5), node(2, NodeKind.DRAFT, 0.6)
    assert [found.id for found in told(begun(one), begun(two), two).journal.nodes] == ["n0002"]
    again = told(begun(one), begun(two), two, begun(one), one)
    assert [found.id for found in again.journal.nodes] == ["n0002", "n0001"]


def test_what_a_journal_keeps_agrees_with_its_nodes() -> None:
    journal, _ = small_run()
    for one in journal.nodes:
        assert journal.root_of(one.id) == journal.path(one.id)[0].id
        again = [one, *journal.seeds_of(one.id)]
        ranks = [journal.objective.rank(each.metric) for each in again if each.is_good]
        assert journal.rank(one.id) == (fmean(ranks) if ranks else -math.inf)
    depths = {one.id: journal.debug_depth(one) for one in journal.nodes}
    assert depths == {one.id: int(one.id == "n0003") for one in journal.nodes}
    journal.drop("n0013")
    journal.put(node(13, NodeKind.DRAFT, 0.7))
    assert journal.root_of("n0013") == "n0013"


def test_a_journal_of_a_run_that_is_read_back_ranks_as_before() -> None:
    journal, _ = small_run()
    back = Journal.from_dict(journal.to_dict())
    best, again = journal.best(), back.best()
    assert best is not None
    assert again is not None
    assert again.id == best.id
