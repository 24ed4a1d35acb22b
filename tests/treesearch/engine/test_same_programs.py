"""Programs that are proposed again: asked for once more, then measured as what they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from search_lab import Climber, Values, lab, proposal, search

from taskweaver.treesearch.engine.search import Search
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.treesearch.record.run_facts import RunFacts
from taskweaver.treesearch.record.run_statistics import effects, history

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
    facts = RunFacts("run", "Idea", 0.0, journal.objective)
    assert {effect.gain for effect in effects(journal, facts, tuned)} == {0.0}
    again = Journal.from_dict(journal.to_dict())
    assert again.samples("n0001").values == journal.samples("n0001").values
    assert again.best() == journal.best()
