"""What is tried next: rules that hold for every journal, and a landscape that is climbed."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples, some

from taskweaver.treesearch.model.artifacts import ScriptArtifact
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Measurement, Node, NodeKind, NodeStatus, Objective
from taskweaver.treesearch.model.policy import (
    NodeChoice,
    SearchRules,
    StageView,
    best_first,
    estimates,
    policy_named,
)
from taskweaver.treesearch.model.stages import STAGES, StageState, why_over

POLICIES = ("best_first", "uct")
DONE = (NodeStatus.OK, NodeStatus.BUGGY, NodeStatus.TIMEOUT, NodeStatus.LOST)
VALUES = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([float("nan"), float("inf")]))


@st.composite
def journals(draw: st.DrawFn, number: int = 1, maximize: bool | None = None) -> Journal:
    """Make a journal whose last stage is of a number; it begins with a node that works."""
    up = draw(st.booleans()) if maximize is None else maximize
    journal = Journal(Objective("value", up))
    if number > 1:
        journal.put(made(1, NodeKind.DRAFT, value=0.0))
    for step in range(len(journal) + 1, len(journal) + draw(st.integers(0, 14)) + 1):
        parents: list[str | None] = [node.id for node in journal.finished]
        parent = draw(st.sampled_from(parents if number > 1 else [None, *parents]))
        kind = NodeKind.DRAFT
        if parent is not None:
            grown = [NodeKind.SEED, STAGES[number - 1].growth]
            kinds = [NodeKind.DEBUG] if journal[parent].has_failed else grown
            kind = draw(st.sampled_from(kinds))
        status = draw(st.sampled_from([*DONE, NodeStatus.RUNNING]))
        value = draw(VALUES) if status is NodeStatus.OK else None
        journal.put(made(step, kind, number, parent, status, value))
    return journal


def made(
    step: int,
    kind: NodeKind,
    stage: int = 1,
    parent: str | None = None,
    status: NodeStatus = NodeStatus.OK,
    value: float | None = None,
) -> Node:
    metric = None if value is None else Measurement({"": value})
    finished_at = None if status is NodeStatus.RUNNING else 1.0
    program = ScriptArtifact(f"step = {step}")
    own = {"parent": parent, "status": status, "artifacts": program, "metric": metric}
    return Node(f"n{step:04d}", step, kind, stage, **own, finished_at=finished_at)


def view_of(journal: Journal, number: int, rules: SearchRules) -> StageView:
    base = "n0001" if number > 1 else None
    drafts = rules.num_drafts if number == 1 else 0
    growth = STAGES[number - 1].growth
    return StageView(journal, journal.of_stage(number), growth, base, drafts)


RULES = st.builds(
    SearchRules, st.integers(1, 4), st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 3)
)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=examples(len(some(range(60), 25))))
@given(data=st.data(), rules=RULES, seed=st.integers(0, 99))
def test_what_is_chosen_keeps_to_the_rules(
    name: str, data: st.DataObject, rules: SearchRules, seed: int
) -> None:
    number = data.draw(st.integers(1, 4))
    journal = data.draw(journals(number))
    view = view_of(journal, number, rules)
    policy = policy_named(name, rules)
    chosen = policy(view, Random(seed))
    assert policy(view, Random(seed)) == chosen
    check(chosen, journal, view, rules)


def check(action: NodeChoice | None, journal: Journal, view: StageView, rules: SearchRules) -> None:
    drafts = sum(node.kind is NodeKind.DRAFT for node in view.nodes)
    is_running = any(node.status is NodeStatus.RUNNING for node in view.nodes)
    if action is None:
        assert is_running
        assert drafts >= view.drafts
        return
    if action.kind is NodeKind.DRAFT:
        assert action.parent is None
        assert drafts < view.drafts or not is_running
        return
    assert action.parent is not None
    parent = journal[action.parent]
    if action.kind is NodeKind.DEBUG:
        assert parent.has_failed
        assert parent.kind is not NodeKind.SEED
        assert not journal.children(parent.id)
        assert journal.debug_depth(parent) < rules.max_debug_depth
        return
    assert action.kind is view.growth
    assert parent.is_good
    assert parent.kind is not NodeKind.SEED
    if action.kind is NodeKind.ABLATION:
        assert parent.id == view.base


@settings(max_examples=examples(len(some(range(60), 25))))
@given(data=st.data(), nodes=st.integers(1, 12), drafts=st.integers(1, 4))
def test_a_stage_ends_when_its_nodes_are_used_up(
    data: st.DataObject, nodes: int, drafts: int
) -> None:
    number = data.draw(st.integers(1, 4))
    journal = data.draw(journals(number))
    state = StageState(STAGES[number - 1], "n0001" if number > 1 else None)
    reason = why_over(state, journal, drafts=drafts, max_nodes=nodes)
    done = [node for node in journal.of_stage(number) if node.finished_at is not None]
    if len(done) >= nodes:
        assert reason == f"limit of the stage reached: {nodes} node{'' if nodes == 1 else 's'}"
    elif number == 1:
        has_drafts = sum(node.kind is NodeKind.DRAFT for node in done) >= drafts
        assert bool(reason) == (has_drafts and any(node.is_good for node in done))
    elif not STAGES[number - 1].patience:
        assert not reason


def test_a_stage_ends_when_nothing_is_better_for_a_while() -> None:
    journal = drafted(1.0)
    state = StageState(STAGES[1], "n0001", first=1)
    reasons = []
    for step, value in enumerate([0.5, 2.0, 1.5, 2.0, 0.0, 1.0], start=2):
        journal.put(made(step, NodeKind.HYPERPARAM, 2, "n0001", NodeStatus.OK, value))
        reasons.append(why_over(state, journal, drafts=1, max_nodes=99))
    assert reasons == ["", "", "", "", "", "the last 4 nodes were no better"]
    further = replace(state, substage=2, first=len(journal))
    assert why_over(further, journal, drafts=1, max_nodes=99) == ""


def drafted(*values: float | None) -> Journal:
    """Make a journal of drafts; None is one that runs."""
    journal = Journal(Objective("value"))
    for step, value in enumerate(values, start=1):
        status = NodeStatus.RUNNING if value is None else NodeStatus.OK
        journal.put(made(step, NodeKind.DRAFT, 1, None, status, value))
    return journal


@pytest.mark.parametrize("name", POLICIES)
def test_more_slots_than_drafts_make_no_more_drafts(name: str) -> None:
    rules = SearchRules(num_drafts=3)
    policy = policy_named(name, rules)
    assert policy(view_of(drafted(None, None), 1, rules), Random(0)) == NodeChoice(NodeKind.DRAFT)
    assert policy(view_of(drafted(None, None, None), 1, rules), Random(0)) is None
    grown = policy(view_of(drafted(None, 1.0, None), 1, rules), Random(0))
    assert grown == NodeChoice(NodeKind.IMPROVE, "n0002")


@pytest.mark.parametrize("name", POLICIES)
def test_a_node_that_proposed_nothing_is_not_repaired(name: str) -> None:
    rules = SearchRules(num_drafts=2, debug_prob=1.0)
    journal = drafted(1.0)
    failed = made(2, NodeKind.DRAFT, status=NodeStatus.BUGGY)
    journal.put(replace(failed, artifacts=None))
    policy = policy_named(name, rules)
    view = view_of(journal, 1, rules)
    assert policy(view, Random(0)) == NodeChoice(NodeKind.IMPROVE, "n0001")
    journal.put(failed)
    again = best_first(rules, view_of(journal, 1, rules), Random(0))
    assert again == NodeChoice(NodeKind.DEBUG, "n0002")


def test_the_exploration_of_uct_is_a_rule() -> None:
    journal = drafted(1.0, 2.0)
    for step in range(3, 7):
        journal.put(made(step, NodeKind.IMPROVE, parent="n0002", value=1.5))
    for exploration, is_greedy in ((0.0, True), (100.0, False)):
        rules = SearchRules(num_drafts=2, exploration=exploration)
        choice = policy_named("uct", rules)(view_of(journal, 1, rules), Random(0))
        assert (choice.parent == "n0002") == is_greedy


def repeated(journal: Journal, parent: str, *values: float) -> None:
    for value in values:
        step = len(journal) + 1
        journal.put(made(step, NodeKind.SEED, 1, parent, NodeStatus.OK, value))


def test_a_lucky_child_of_a_bad_family_is_not_grown_where_noise_was_measured() -> None:
    journal = drafted(1.0, 0.0)
    children = {"n0001": (1.1, 0.9, 1.0), "n0002": (0.1, -0.1, 1.15)}
    for parent, values in children.items():
        for value in values:
            journal.put(made(len(journal) + 1, NodeKind.IMPROVE, parent=parent, value=value))
    rules = SearchRules(num_drafts=2, debug_prob=0.0)
    view = view_of(journal, 1, rules)
    assert best_first(rules, view, Random(0)) == NodeChoice(NodeKind.IMPROVE, "n0008")
    repeated(journal, "n0001", 0.4, 1.6, 1.0)
    assert journal.best().id == "n0008"
    chosen = best_first(rules, view, Random(0))
    assert journal.path(chosen.parent)[0].id == "n0001"


@settings(max_examples=examples(len(some(range(60), 25))))
@given(data=st.data(), scale=st.sampled_from([1e-6, 1.0, 1e9]), noisy=st.booleans())
def test_estimates_lie_between_the_measurements_and_follow_their_scale(
    data: st.DataObject, scale: float, *, noisy: bool
) -> None:
    journal = data.draw(journals(1, maximize=True))
    scaled = Journal(journal.objective)
    good = [node for node in journal.good if node.kind is NodeKind.DRAFT]
    if noisy and good:
        repeated(journal, good[0].id, 1.0, 2.0)
    for node in journal.nodes:
        value = None if node.value is None else node.value * scale
        metric = node.metric if value is None else Measurement({"": value})
        scaled.put(replace(node, metric=metric))
    nodes = [node for node in journal.nodes if node.is_good and node.kind is not NodeKind.SEED]
    found, other = estimates(journal, nodes), estimates(scaled, nodes)
    values = [journal.objective.rank(node.metric) for node in journal.good]
    for node_id, value in found.items():
        if not math.isinf(value):
            assert min(values) - 1e-9 <= value <= max(values) + 1e-9
            assert math.isclose(other[node_id], value * scale, rel_tol=1e-6, abs_tol=1e-9 * scale)
