"""Keys under ``search.`` that shape a run, each set as a user sets it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from search_lab import ONE, Climber, is_draft, lab, search, trying
from sizes import some

from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.model.node import NodeKind

SMALL = ONE | {"memory": False}


def nodes_of(made: Search) -> Counter[int]:
    nodes = [node for node in made.state.journal.nodes if node.kind is not NodeKind.SEED]
    return Counter(node.stage for node in nodes)


class Failing(Climber):
    """A model whose attempts of some kinds fail the first time."""

    def __init__(self, *kinds: str) -> None:
        super().__init__(fault=self._wrong)
        self._kinds = list(kinds)

    def _wrong(self, prompt: Mapping[str, str]) -> str | None:
        kind = prompt.get("Kind of attempt", "").partition(" ")[0]
        if kind not in self._kinds:
            return None
        self._kinds.remove(kind)
        return trying(prompt, run={"commands": ["exit 3"]})


def test_each_stage_has_as_many_nodes_as_configured(tmp_path: Path) -> None:
    few = {"stage1_nodes": 3, "stage2_nodes": 2, "stage3_nodes": 1, "stage4_nodes": 1}
    model = Failing("draft", "draft", "draft", "debug", "debug")  # a program is refused once
    settings = SMALL | few | {"num_drafts": 2, "debug_prob": 0.0}
    made = search(lab(tmp_path / "a"), model, **settings)
    assert nodes_of(made) == {1: 3}  # none of them worked
    made = search(lab(tmp_path / "b"), Climber(), **settings)
    assert nodes_of(made) == {1: 2, 2: 2, 3: 1, 4: 1}
    kinds = Counter(node.kind for node in made.state.journal.nodes)
    assert kinds[NodeKind.DRAFT] == 2


def test_the_best_node_is_repeated_as_often_as_configured(tmp_path: Path) -> None:
    """One that gives the same value again is repeated once."""
    seeded = Climber(lambda _: "$TASKWEAVER_SEED")
    made = search(lab(tmp_path / "a"), seeded, **SMALL | {"num_seeds": 2, "seed": 7})
    assert [node.seed for node in made.state.journal.nodes] == [7, 8, 9]
    made = search(lab(tmp_path / "b"), Climber(), **SMALL | {"num_seeds": 3})
    assert [node.seed for node in made.state.journal.nodes] == [0, 1]
    assert made.state.journal.samples("n0001").is_deterministic


def test_a_run_ends_after_its_steps_in_its_folder(tmp_path: Path) -> None:
    many = SMALL | {"stage1_nodes": 9, "num_drafts": 9}
    made = search(lab(tmp_path), Climber(), **many, steps=2, folder=str(tmp_path / "runs"))
    assert len(made.state.journal.nodes) == 2
    assert made.places.folder.parent == tmp_path / "runs"


@pytest.mark.parametrize(
    ("prob", "depth", "is_repaired"),
    [(1.0, 2, True), (1.0, 0, False), pytest.param(0.0, 2, False, marks=pytest.mark.long)],
)
def test_a_failed_attempt_is_repaired_as_configured(
    tmp_path: Path, prob: float, depth: int, is_repaired: bool
) -> None:
    settings = SMALL | {"stage2_nodes": 2, "debug_prob": prob, "max_debug_depth": depth}
    made = search(lab(tmp_path), Failing("hyperparam"), **settings)
    kinds = [node.kind for node in made.state.journal.nodes]
    assert kinds[:2] == [NodeKind.DRAFT, NodeKind.HYPERPARAM]
    assert (kinds[2] is NodeKind.DEBUG) is is_repaired


def test_the_same_seed_makes_the_same_choices(tmp_path: Path) -> None:
    """Each attempt fails: it is repaired, or another one is made in its place."""
    few = SMALL | {"stage2_nodes": 8, "debug_prob": 0.5}
    kinds = []
    for name in ("one", "two"):
        made = search(lab(tmp_path / name), Failing(*["hyperparam", "debug"] * 16), **few)
        kinds.append([node.kind for node in made.state.journal.nodes])
    assert kinds[0] == kinds[1]
    assert {NodeKind.HYPERPARAM, NodeKind.DEBUG} < set(kinds[0])


def test_words_are_those_of_the_configured_folder(tmp_path: Path) -> None:
    """Those that a project has are read without a key; some are for searches with a memory."""

    def introduction(name: str, **settings: Any) -> str:
        model = Climber()
        search(project, model, name=name, **ONE, **settings)
        return model.prompts[0]["Introduction"]

    project = lab(tmp_path)
    folder = project / "prompts/agent/parallel/tasks/draft"
    folder.mkdir(parents=True)
    (folder / "introduction.txt").write_text("Draft in the manner of this house.")
    own = introduction("one")
    assert own.startswith("Draft in the manner of this house.")
    assert "<memory_update>" in own
    (folder / "introduction_with_memory.txt").write_text("Draft, and use <memory_update>.")
    assert introduction("two") == "Draft, and use <memory_update>."
    assert introduction("three", memory=False) == "Draft in the manner of this house."
    folder = tmp_path / "words/agent/parallel/tasks/draft"
    folder.mkdir(parents=True)
    (folder / "introduction.txt").write_text("Draft like this.")
    words = str(tmp_path / "words")
    assert introduction("four", memory=False, prompt_dir=words) == "Draft like this."


def test_the_policy_is_the_configured_one(tmp_path: Path) -> None:
    from taskweaver.config.config_mgt import AppConfigSource
    from taskweaver.treesearch.model.config import SearchConfig
    from taskweaver.treesearch.model.policy import policy_named

    policies = set()
    for name in ("best_first", "uct"):
        given = {"search.policy": name, "search.uct_c": 1.5}
        config = SearchConfig(AppConfigSource(None, given, tmp_path))
        assert config.rules.exploration == 1.5  # see test_the_exploration_of_uct_is_a_rule
        policies.add(policy_named(config.policy, config.rules).func)
    assert len(policies) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_as_many_attempts_at_a_time_as_configured(tmp_path: Path, workers: int) -> None:
    """Two first attempts meet, where they may, each waiting for the other for a while."""
    met = threading.Barrier(2)
    meetings: list[bool] = []

    def meet(prompt: Mapping[str, str]) -> None:
        # The second proposes the program of the first, and is asked again.
        if is_draft(prompt) and "Parsing Feedback" not in prompt:
            try:
                met.wait(0.3 if workers == 1 else 60.0)
                meetings.append(True)
            except threading.BrokenBarrierError:
                meetings.append(False)

    settings = SMALL | {"stage1_nodes": 2, "num_drafts": 2, "workers": workers}
    search(lab(tmp_path), Climber(fault=meet), **settings)
    assert meetings == [workers == 2] * 2


@pytest.mark.parametrize("is_on", [True, False])
def test_a_run_has_a_memory_where_it_is_enabled(tmp_path: Path, is_on: bool) -> None:
    made = search(lab(tmp_path, **{"memory.enabled": is_on}), Climber(), **ONE)
    assert made.places.memory.exists() is is_on


@pytest.mark.parametrize("name", some(["review", "plots", "phase0", "summaries"], 2))
def test_a_model_is_asked_for_what_is_configured(tmp_path: Path, name: str) -> None:
    few, more = Climber(), Climber()
    search(lab(tmp_path / "off"), few, **SMALL, **{name: False})
    search(lab(tmp_path / "on"), more, **SMALL, **{name: True})
    assert len(more.prompts) > len(few.prompts)
