"""Programs that are proposed again: asked for once more, then measured as what they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from search_lab import ONE, PLACE, Climber, lab, opened, proposal, search
from search_story import read_journal

from taskweaver.memory.branch_log import BranchLog
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.model.node import NodeKind, NodeStatus
from taskweaver.treesearch.record.run_statistics import RunFacts, effects, history
from taskweaver.treesearch.record.runlog import RunState


class Stubborn(Climber):
    """A model that has one program, whatever it is asked."""

    def attempt(self, prompt: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002 - always the same
        """Return the program, under another name each time."""
        text = '{"metric": $((100 + $TASKWEAVER_SEED))}'
        return {**proposal(PLACE, text=text), "name": f"x={len(self.prompts)}"}


def test_a_program_that_is_proposed_again_is_another_measurement_of_it(tmp_path: Path) -> None:
    """It has no effect of its own."""
    few = {"stage1_nodes": 4, "num_drafts": 3, "stage2_nodes": 3, "stage3_nodes": 0}
    model = Stubborn()
    made = search(lab(tmp_path), model, **few, stage4_nodes=0)
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

    tuned = [node for node in journal.nodes if node.kind is NodeKind.HYPERPARAM]
    assert tuned
    facts = RunFacts("run", "Idea", 0.0)
    assert {effect.gain for effect in effects(journal, facts, tuned)} == {0.0}
    again = read_journal(journal.to_dict())
    assert again.samples("n0001").values == journal.samples("n0001").values
    assert again.best() == journal.best()


class Emptied(Climber):
    """A model that has nothing to take away: it proposes the first program again and again."""

    def __init__(self, *commands: str) -> None:
        super().__init__()
        self._commands = commands

    def attempt(self, prompt: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002 - always the same
        """Return the program."""
        return proposal(PLACE, run={"commands": [*self._commands]})


def test_an_attempt_with_nothing_but_a_program_that_runs_is_skipped(tmp_path: Path) -> None:
    """The first ablation, with a seed of its own, runs until the second has ended."""
    ended = tmp_path / "ended"
    wait = f'while [ "$TASKWEAVER_SEED" != 0 ] && [ ! -e {ended} ]; do sleep 0.05; done'

    def changed(state: RunState) -> None:
        if any(node.status is NodeStatus.SKIPPED for node in state.journal.nodes):
            ended.touch()

    few = ONE | {"stage4_nodes": 4, "workers": 2}
    with opened(lab(tmp_path), Emptied(wait, "sh try.sh"), **few) as made:
        made.run(changed)
        memory = made.places.memory
    journal = made.state.journal
    first, *others = journal.nodes
    assert sorted(node.status for node in others) == [NodeStatus.OK, NodeStatus.SKIPPED]
    skipped = next(node for node in others if node.status is NodeStatus.SKIPPED)
    with MemoryManager(memory) as store:
        post = BranchLog(store, skipped.id).rounds()[-1].post_list[-1]
    reason = f"{skipped.id} skipped: its program is that of {first.id}."
    assert post.message == f"{skipped.plan}\n\n{reason}"
    assert {node.same_as for node in others} == {first.id}
    assert not journal.buggy
    assert made.state.reason.startswith("nothing new was proposed")
    assert journal.samples(first.id).n == 2
    assert read_journal(journal.to_dict()).nodes == journal.nodes
