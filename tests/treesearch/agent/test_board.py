"""The board of a run: lessons of other attempts, bounded, ranked, each of them once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from search_story import node

from taskweaver.memory.branched import MemoryConfig, MemoryManager
from taskweaver.treesearch.agent.board import board
from taskweaver.treesearch.agent.describe import attempt_lines, parent_sections
from taskweaver.treesearch.agent.events import RunEvents, shown_elsewhere
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import (
    Measurement,
    Node,
    NodeError,
    NodeKind,
    NodeStatus,
    Objective,
)
from taskweaver.treesearch.model.stages import STAGES, StageState


def attempt(step: int, value: float | None, findings: str, parent: str = "n0001") -> Node:
    own = {"parent": parent, "name": f"x={step}", "summary": {"findings": findings}}
    return node(step, NodeKind.IMPROVE, value, **own)


CHILD = attempt(9, None, "")


def story() -> Journal:
    journal = Journal(Objective(unit="s", maximize=False))
    journal.put(node(1, NodeKind.DRAFT, 10.0, summary={"findings": "The loop order decides."}))
    journal.put(attempt(2, 8.0, "Blocks of 32 fit the cache."))
    journal.put(attempt(3, None, "Four threads need a flag of the linker."))
    journal.put(attempt(4, 9.9, "the loop  order decides."))
    journal.put(attempt(5, 8.1, "Blocks of 32 fit the cache."))
    return journal


def test_each_lesson_of_others_stands_once_with_its_effect() -> None:
    journal = story()
    assert board(journal, CHILD) == [
        "n0002 improve x=2: 8 s (+2 s). Blocks of 32 fit the cache.",
        "n0003 improve x=3: buggy. Four threads need a flag of the linker.",
    ]
    lines = board(journal, attempt(9, None, "", parent="n0002"))
    assert [line[:5] for line in lines] == ["n0001", "n0003"]


def test_a_lesson_of_a_program_that_was_repeated_says_how_it_did() -> None:
    journal = story()
    for step, value in ((6, 7.0), (7, 9.5)):
        journal.put(node(step, NodeKind.SEED, value, parent="n0002"))
    assert "within the noise" in board(journal, CHILD)[0]
    journal = story()
    journal.put(node(6, NodeKind.SEED, None, parent="n0002"))
    said = "n0002 improve x=2: 8 s, but it failed when it was repeated. Blocks of 32 fit the cache."
    assert board(journal, CHILD)[0] == said


def test_the_largest_effects_stay_where_there_is_no_room_for_all() -> None:
    journal = story()
    for step in range(10, 60):
        words = f"Lesson {step} of many: " + "word " * 60
        journal.put(attempt(step, 10.0 - step / 10, words))
    lines = board(journal, attempt(99, None, ""))
    assert sum(len(line) + 1 for line in lines) <= 1500
    assert [line[:5] for line in lines] == sorted(line[:5] for line in lines)
    assert lines[-1].startswith("n0059 improve x=59: 4.1 s (+5.9 s). Lesson 59 of many")


def test_the_plan_of_a_running_attempt_is_shown_until_it_ends() -> None:
    journal = story()
    running = replace(
        attempt(6, None, ""), status=NodeStatus.RUNNING, finished_at=None, error=None, plan=""
    )
    journal.put(running)
    journal.note_proposal(replace(running, name="threads=4", plan="Use four threads."))
    assert attempt_lines(journal, [running]) == [
        "n0006 improve threads=4 of n0001: running. Use four threads."
    ]
    journal.put(attempt(6, 7.0, "Threads help."))
    assert journal.as_proposed(running).plan != "Use four threads."


def test_a_lesson_that_was_found_untrue_is_withdrawn() -> None:
    journal = story()
    journal.put(replace(attempt(6, 7.0, "Blocks of 64 are better."), refutes=("n0002", "n0005")))
    assert [line[:5] for line in board(journal, CHILD)] == ["n0003", "n0006"]
    learnt = parent_sections(journal["n0002"], journal)["What was learnt"]
    assert learnt.startswith("Found: (n0006 found this untrue) Blocks of 32")
    assert "node_uid:n0002" in shown_elsewhere(CHILD, journal.refuted)
    journal.put(replace(attempt(7, 8.0, "That was a warm cache."), refutes=("n0006",)))
    assert journal.refuted == {"n0006": "n0007"}  # who was refuted refutes nothing


def test_a_failure_names_its_repair() -> None:
    journal = story()
    journal.put(node(6, NodeKind.DEBUG, 7.5, parent="n0003"))
    told = "n0003 improve x=3: buggy, repaired by n0006."
    assert any(line.startswith(told) for line in board(journal, CHILD))
    assert "buggy, repaired by n0006" in attempt_lines(journal, [journal["n0003"]])[0]


def test_a_parent_is_told_with_its_ancestors_and_their_changes() -> None:
    journal = story()
    journal.put(attempt(6, 7.0, "", parent="n0002"))
    told = parent_sections(journal["n0006"], journal)
    assert told["Its ancestors"] == ["n0001 draft: 10 s", "n0002 improve x=2: 8 s"]
    assert "Its ancestors" not in parent_sections(journal["n0001"], journal)


def test_a_failed_command_is_told_by_what_it_said() -> None:
    journal = story()
    said = "python: can't open file '/workspace/experiment.py'"
    message = (
        f"run: `python check.py`: exit status 1\n{said}\nTraceback (most recent call last):\n"
        "  File \"check.py\", line 17\nsubprocess.CalledProcessError: Command 'python' failed"
    )
    failed = replace(journal["n0003"], error=NodeError("RuntimeError", message))
    journal.put(failed)
    assert said in attempt_lines(journal, [failed])[0]
    alone = NodeError("RuntimeError", message.replace(f"{said}\n", ""))
    assert alone.gist.startswith("subprocess.CalledProcessError")


def test_figures_of_several_data_sets_are_told_each() -> None:
    journal = story()
    metric = Measurement({"large": 6.0, "small": 8.0})
    journal.put(replace(attempt(6, 7.0, ""), metric=metric))
    (line,) = attempt_lines(journal, [journal["n0006"]])
    assert "7 s, the mean of large 6 s, small 8 s" in line


LESSON = "findings: blocks of 64 rows fit the cache"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryManager]:
    with MemoryManager(tmp_path / "m.sqlite", MemoryConfig(memory_log_enabled=False)) as memory:
        memory.create_branch(None, branch_id="root", live=True)
        yield memory


def test_a_lesson_is_shown_with_the_record_to_search_for(store: MemoryManager) -> None:
    store.fork("root", "best")
    store.mem_archival_write(LESSON, tags=["NODE_SUMMARY", "node_uid:n0001"], branch_id="best")
    best = replace(node(1, NodeKind.DRAFT, 0.5), branch="best")
    RunEvents(store, Journal(Objective(), [best])).lesson(best)
    (promoted,) = store["root"].records(tags=["NODE_SUMMARY"])
    (event,) = store["root"].events()
    told = f"Lesson of n0001 (archival record #{promoted.id}, tag node_uid:n0001): {LESSON}"
    assert event.text == told
    assert LESSON in store.render_for_prompt(store.fork("root", "another"))
    store.mem_archival_update(promoted.id, text="corrected", branch_id="root")
    before = store.seq
    RunEvents(store, Journal(Objective(), [best])).lesson(best)
    assert store.seq == before


def test_the_same_goals_of_two_stages_are_noted_once_each(store: MemoryManager) -> None:
    for _ in range(3):  # a run that is resumed comes by again
        events = RunEvents(store, Journal(Objective()))
        for number in (0, 1):
            events.goal_generated(StageState(STAGES[number], "", 1, "be fast", 0))
    (event,) = store["root"].events()
    assert event.count == 2
