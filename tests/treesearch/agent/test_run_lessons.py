"""What the root of a run notes for every attempt: the lesson itself, once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from search_story import node

from taskweaver.memory.branched import MemoryConfig, MemoryManager
from taskweaver.treesearch.agent.events import RunEvents
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import Node, NodeKind, Objective
from taskweaver.treesearch.model.stages import STAGES, StageState

LESSON = "findings: blocks of 64 rows fit the cache"


@pytest.fixture
def store(tmp_path: Path) -> MemoryManager:
    memory = MemoryManager(tmp_path / "m.sqlite", MemoryConfig(memory_log_enabled=False))
    memory.create_branch(None, branch_id="root", live=True)
    memory.fork("root", "best")
    tags = ["NODE_SUMMARY", "node_uid:n0001"]
    memory.mem_archival_write(LESSON, tags=tags, branch_id="best")
    return memory


@pytest.fixture
def best() -> Node:
    return replace(node(1, NodeKind.DRAFT, 0.5), branch="best")


def test_a_lesson_is_shown_with_the_record_to_search_for(store: MemoryManager, best: Node) -> None:
    with store:
        events = RunEvents(store, Journal(Objective(), [best]))
        events.lesson(best)
        (promoted,) = store["root"].records(tags=["NODE_SUMMARY"])
        (event,) = store["root"].events()
        assert event.text == (
            f"Lesson of n0001 (archival record #{promoted.id}, tag node_uid:n0001): {LESSON}"
        )
        assert LESSON in store.render_for_prompt(store.fork("root", "another"))
        store.mem_archival_update(promoted.id, text="corrected", branch_id="root")
        before = store.seq
        RunEvents(store, Journal(Objective(), [best])).lesson(best)
        assert store.seq == before


def test_the_same_goals_of_two_stages_are_noted_once_each(store: MemoryManager) -> None:
    with store:
        for _ in range(3):  # a run that is resumed comes by again
            events = RunEvents(store, Journal(Objective()))
            for number in (0, 1):
                events.goal_generated(StageState(STAGES[number], "", 1, "be fast", 0))
        (event,) = store["root"].events()
        assert event.count == 2
