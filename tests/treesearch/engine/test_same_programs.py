"""Programs that are proposed again: asked for once more, then measured as what they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from search_lab import FAST, Climber, Values, lab, proposal, search

from taskweaver.app.app import TaskWeaverApp
from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import NodeKind, NodeStatus
from taskweaver.treesearch.record.run_statistics import RunFacts, effects, history
from taskweaver.treesearch.record.state import RunState
from taskweaver.treesearch.service import start_search

SETTINGS = {
    "stage1_nodes": 4, "num_drafts": 3, "stage2_nodes": 3, "stage3_nodes": 0, "stage4_nodes": 0,
    "num_seeds": 1,
}  # fmt: skip


class Stubborn(Climber):
    """A model that has one program, whatever it is asked."""

    def attempt(self, prompt: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002 - always the same
        """Return the program, under another name each time."""
        values: Values = dict.fromkeys(("x", "y", "z"), 1)
        text = '{"metric": $((100 + $TASKWEAVER_SEED))}'
        return {**proposal(values, text=text), "name": f"x={len(self.prompts)}"}


def played(folder: Path) -> tuple[Search, Stubborn]:
    model = Stubborn()
    return search(lab(folder), model, **SETTINGS), model


def test_a_program_that_is_proposed_again_is_another_measurement_of_it(tmp_path: Path) -> None:
    made, model = played(tmp_path)
    journal = made.state.journal
    first, *others = journal.nodes
    assert made.state.is_over
    proposed = [node for node in others if node.kind is not NodeKind.SEED]
    assert len(proposed) >= 3
    assert {node.same_as for node in proposed} == {first.id}
    assert journal.attempts == 1 + len(proposed)  # the budget counts them
    assert len({node.seed for node in journal.nodes}) == len(journal)
    assert journal.samples(first.id).n == len(journal)
    assert journal.best() is first  # others were luckier
    assert [value for _, value in history(journal, journal.nodes)] == [first.value]
    feedback = [prompt for prompt in model.prompts if "Parsing Feedback" in prompt]
    assert len(feedback) == len(proposed)  # each was asked once for another program
    assert f"{first.id} was exactly this program" in feedback[0]["Parsing Feedback"]


def test_an_earlier_program_has_no_effect_of_its_own(tmp_path: Path) -> None:
    made, _ = played(tmp_path)
    journal = made.state.journal
    tuned = [node for node in journal.nodes if node.kind is NodeKind.HYPERPARAM]
    assert tuned
    facts = RunFacts("run", "Idea", 0.0)
    assert {effect.gain for effect in effects(journal, facts, tuned)} == {0.0}
    again = Journal.from_dict(journal.to_dict())
    assert again.samples("n0001").values == journal.samples("n0001").values
    assert again.best() == journal.best()


class Emptied(Climber):
    """A model that has nothing to take away: it proposes the first program again and again."""

    def __init__(self, *commands: str) -> None:
        super().__init__()
        self._commands = commands

    def attempt(self, prompt: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002 - always the same
        """Return the program."""
        return proposal(dict.fromkeys(("x", "y", "z"), 0), run={"commands": [*self._commands]})


def test_an_attempt_with_nothing_but_a_program_that_runs_is_skipped(tmp_path: Path) -> None:
    """The first ablation, with a seed of its own, runs until the second has ended."""
    ended = tmp_path / "ended"
    wait = f'while [ "$TASKWEAVER_SEED" != 0 ] && [ ! -e {ended} ]; do sleep 0.05; done'
    project = lab(tmp_path)

    def changed(state: RunState) -> None:
        if any(node.status is NodeStatus.SKIPPED for node in state.journal.nodes):
            ended.touch()

    few = {
        "search.stage1_nodes": 1, "search.num_drafts": 1, "search.stage2_nodes": 0,
        "search.stage3_nodes": 0, "search.stage4_nodes": 4, "search.workers": 2,
        "search.num_seeds": 0,
    }  # fmt: skip
    with (
        TaskWeaverApp(project, model=Emptied(wait, "sh try.sh")) as app,
        start_search(app, project / "idea.md", FAST | few, name="run") as made,
    ):
        made.run(changed)
    journal = made.state.journal
    first, *others = journal.nodes
    assert sorted(node.status for node in others) == [NodeStatus.OK, NodeStatus.SKIPPED]
    assert {node.same_as for node in others} == {first.id}
    assert not journal.buggy
    assert made.state.reason.startswith("nothing new was proposed")
    assert journal.samples(first.id).n == 2
    assert Journal.from_dict(journal.to_dict()).nodes == journal.nodes
