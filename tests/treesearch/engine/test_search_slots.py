"""Slots of a search: they go on with the next stage while the last tasks of one still run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from patience import PATIENCE_S
from search_lab import FULL, Climber, is_draft, lab, proposal, search

from taskweaver.treesearch.engine.change_claims import ChangeClaims
from taskweaver.treesearch.execution.timing import MeasuringSlots
from taskweaver.treesearch.model.artifacts import ScriptArtifact
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus, Objective

LESS = {"stage1_nodes": 3, "stage2_nodes": 3, "stage3_nodes": 1, "stage4_nodes": 1, "workers": 2}
FEW = LESS | {"stage2_nodes": 1, "stage3_nodes": 0, "stage4_nodes": 0}


Test = Callable[[Mapping[str, str]], bool]


class Held:
    """A fault of a `Climber` that holds one reply back until something else is asked."""

    def __init__(self, is_held: Test, goes_on: Test) -> None:
        self._is_held, self._goes_on = is_held, goes_on
        self._has_begun = threading.Event()
        self.outcomes: list[bool] = []

    def __call__(self, prompt: Mapping[str, str]) -> str | None:
        if self._goes_on(prompt):
            self._has_begun.set()
        if not self.outcomes and self._is_held(prompt):
            self.outcomes.append(self._has_begun.wait(PATIENCE_S))
        return None


def is_tuning(prompt: Mapping[str, str]) -> bool:
    return prompt.get("Kind of attempt", "").startswith("hyperparam")


def test_an_attempt_of_the_next_stage_begins_beside_the_last_of_one(tmp_path: Path) -> None:
    held = Held(lambda p: is_draft(p) and "n0002" in p.get("Other attempts", ""), is_tuning)
    made = search(lab(tmp_path), Climber(fault=held), num_drafts=3, **LESS)
    assert held.outcomes == [True]
    nodes = made.state.journal.nodes
    assert [node.kind for node in nodes[:4]] == [NodeKind.DRAFT] * 3 + [NodeKind.HYPERPARAM]
    assert [passed.state.stage.number for passed in made.state.passed] == [1, 2, 3, 4]
    for passed in made.state.passed:
        assert made.state.journal[passed.best].stage <= passed.state.stage.number
        assert made.state.journal.repetitions(passed.best)


def test_an_attempt_of_the_next_stage_begins_beside_a_summary(tmp_path: Path) -> None:
    held = Held(lambda prompt: "Figures" in prompt, is_tuning)
    made = search(lab(tmp_path), Climber(fault=held), **FULL, **FEW, num_drafts=1)
    assert held.outcomes == [True]
    assert all(passed.summary for passed in made.state.passed)


def test_two_running_attempts_are_never_the_same_program_nor_change() -> None:
    journal = Journal(Objective())
    one, two, three = (Node(f"n000{n}", n, NodeKind.IMPROVE, 1, parent="n0009") for n in (1, 2, 3))
    for node in (one, two, three):
        journal.put(node)
    claims = ChangeClaims(journal)
    take = partial(claims.take, insists=False)
    program, other = ScriptArtifact("x = 1"), ScriptArtifact("x = 2")
    assert take(one, "x=1", program) == ""
    assert take(one, "x=1", program) == ""  # it is asked again, after a worker was lost
    changed = take(two, "x=1", other)
    assert changed == "n0001 makes the change x=1 already; make another change than x=1"
    twin = take(two, "x=one", program)
    assert twin == "n0001 tries exactly this program now; make another change than x=1, x=one"
    assert claims.take(two, "x=one", program, insists=True) == ""
    assert claims.is_skipped(two)
    journal.put(replace(one, status=NodeStatus.OK, finished_at=1.0))
    measured = take(two, "x=uno", program)
    assert measured.startswith("n0001 was exactly this program; make another change than x=1,")
    assert claims.owner(two) == ""
    assert claims.take(two, "x=uno", program, insists=True) == ""
    assert (claims.owner(two), claims.is_skipped(two)) == ("n0001", False)
    assert take(three, "x=1", other).startswith("n0001 makes the change x=1 already")
    again = ChangeClaims(journal)  # none had a name in the journal
    assert again.take(three, "x=1", other, insists=False) == ""


class OtherDrafts(Climber):
    """A model whose first attempts differ."""

    def attempt(self, prompt: Mapping[str, str]) -> dict[str, Any]:
        if prompt["Kind of attempt"] != "draft":
            return super().attempt(prompt)
        x = len(prompt.get("Other attempts", "").splitlines())
        return proposal({"x": x, "y": 0, "z": 0}, height=x)


def test_a_figure_is_known_before_its_review(tmp_path: Path) -> None:
    reviews = threading.Semaphore(1)

    def is_first_review(prompt: Mapping[str, str]) -> bool:
        is_review = "Result" in prompt and "Kind of attempt" not in prompt
        return is_review and reviews.acquire(blocking=False)

    held = Held(is_first_review, lambda p: "running, measured " in p.get("Other attempts", ""))
    made = search(lab(tmp_path), OtherDrafts(fault=held), num_drafts=3, **FEW, **FULL)
    assert held.outcomes == [True]
    assert all(made.state.journal.figure(node.id) is None for node in made.state.journal.nodes)


def test_each_host_has_a_slot_of_its_own() -> None:
    """In one thread: a slot that is taken would wait for itself."""
    slots = MeasuringSlots(is_timed=True)
    with slots.of("a").alone(lambda: False), slots.of("b").alone(lambda: False):
        assert slots.of("a") is not slots.of("b")
    with slots.of("a").shared(lambda: False):
        assert slots.of("a") is slots.of("a")
