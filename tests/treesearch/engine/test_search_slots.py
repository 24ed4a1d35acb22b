"""Slots of a search: they go on with the next stage while the last tasks of one still run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from patience import PATIENCE_S
from search_lab import FULL, Climber, lab, proposal, search

from taskweaver.treesearch.engine.change_claims import ChangeClaims
from taskweaver.treesearch.execution.timing import MeasuringSlots
from taskweaver.treesearch.model.artifacts import ScriptArtifact
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.metric import Objective
from taskweaver.treesearch.model.node import Node, NodeKind, NodeStatus

LESS = {"stage1_nodes": 3, "stage2_nodes": 3, "stage3_nodes": 1, "stage4_nodes": 1, "workers": 2}
FEW = LESS | {"stage2_nodes": 1, "stage3_nodes": 0, "stage4_nodes": 0}
WITH_SUMMARIES = {key.removeprefix("search."): value for key, value in FULL.items()}


class Waiting:
    """A fault of a `Climber` that holds one reply back until an attempt of a kind is asked for."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.has_begun = threading.Event()
        self.outcomes: list[bool] = []

    def is_held(self, prompt: Mapping[str, str]) -> bool:
        """Return whether a reply is held back."""
        raise NotImplementedError

    def __call__(self, prompt: Mapping[str, str]) -> str | None:
        if prompt.get("Kind of attempt", "").startswith(self.kind):
            self.has_begun.set()
        if self.is_held(prompt) and not self.outcomes:
            self.outcomes.append(self.has_begun.wait(PATIENCE_S))
        return None


class HeldDraft(Waiting):
    """A model that holds the third draft back."""

    def is_held(self, prompt: Mapping[str, str]) -> bool:
        is_draft = prompt.get("Kind of attempt") == "draft"
        return is_draft and "n0002" in prompt.get("Other attempts", "")


class HeldSummary(Waiting):
    """A model that holds the summary of the first stage back."""

    def is_held(self, prompt: Mapping[str, str]) -> bool:
        return "Figures" in prompt


def test_an_attempt_of_the_next_stage_begins_beside_the_last_of_one(tmp_path: Path) -> None:
    held = HeldDraft("hyperparam")
    made = search(lab(tmp_path), Climber(fault=held), num_drafts=3, **LESS)
    assert held.outcomes == [True]
    nodes = made.state.journal.nodes
    assert [node.kind for node in nodes[:4]] == [NodeKind.DRAFT] * 3 + [NodeKind.HYPERPARAM]
    assert [passed.state.stage.number for passed in made.state.passed] == [1, 2, 3, 4]
    for passed in made.state.passed:
        assert passed.best is not None
        assert made.state.journal[passed.best].stage <= passed.state.stage.number
        assert made.state.journal.repetitions(passed.best)


def test_an_attempt_of_the_next_stage_begins_beside_a_summary(tmp_path: Path) -> None:
    held = HeldSummary("hyperparam")
    settings = {**WITH_SUMMARIES, **FEW, "num_drafts": 1}
    made = search(lab(tmp_path), Climber(fault=held), **settings)
    assert held.outcomes == [True]
    assert made.state.is_over
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
    journal.put(replace(one, status=NodeStatus.OK, finished_at=1.0))
    measured = take(two, "x=uno", program)
    assert measured.startswith("n0001 was exactly this program; make another change than x=1,")
    assert claims.owner(two) == ""
    assert claims.take(two, "x=uno", program, insists=True) == ""
    assert claims.owner(two) == "n0001"
    assert take(three, "x=1", other).startswith("n0001 makes the change x=1 already")
    again = ChangeClaims(journal)  # none had a name in the journal
    assert again.take(three, "x=1", other, insists=False) == ""


class HeldReview(Waiting):
    """A model that holds one review back until a prompt shows the figure of a running attempt."""

    is_first = True

    def is_held(self, prompt: Mapping[str, str]) -> bool:
        is_review = "Result" in prompt and "Kind of attempt" not in prompt
        is_held, self.is_first = is_review and self.is_first, self.is_first and not is_review
        return is_held

    def __call__(self, prompt: Mapping[str, str]) -> str | None:
        if "running, measured " in prompt.get("Other attempts", ""):
            self.has_begun.set()
        return super().__call__(prompt)


class OtherDrafts(Climber):
    """A model whose first attempts differ."""

    def attempt(self, prompt: Mapping[str, str]) -> dict[str, Any]:
        if prompt["Kind of attempt"] != "draft":
            return super().attempt(prompt)
        x = len(prompt.get("Other attempts", "").splitlines())
        return proposal({"x": x, "y": 0, "z": 0}, height=x)


def test_a_figure_is_known_before_its_review(tmp_path: Path) -> None:
    held = HeldReview("no kind")
    settings = {**FEW, **WITH_SUMMARIES}
    made = search(lab(tmp_path), OtherDrafts(fault=held), num_drafts=3, **settings)
    assert held.outcomes == [True]
    assert made.state.is_over
    assert all(made.state.journal.figure(node.id) is None for node in made.state.journal.nodes)


def test_each_host_has_a_slot_of_its_own() -> None:
    """In one thread: a slot that is taken would wait for itself."""
    slots = MeasuringSlots(is_timed=True)
    with slots.of("a").alone(lambda: False), slots.of("b").alone(lambda: False):
        assert slots.of("a") is not slots.of("b")
    with slots.of("a").shared(lambda: False):
        assert slots.of("a") is slots.of("a")
