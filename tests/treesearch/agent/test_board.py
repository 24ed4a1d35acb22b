"""The board of a run: lessons of other attempts, bounded, ranked, each of them once."""

from __future__ import annotations

from search_story import node

from taskweaver.treesearch.agent.board import board
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.metric import Objective
from taskweaver.treesearch.model.node import Node, NodeKind


def attempt(step: int, value: float | None, findings: str, parent: str = "n0001") -> Node:
    return node(
        step, NodeKind.IMPROVE, value, parent=parent, name=f"x={step}",
        summary={"findings": findings},
    )  # fmt: skip


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
    child = attempt(9, None, "", parent="n0001")
    assert board(journal, child) == [
        "n0002 improve x=2: 8 s (+2 s). Blocks of 32 fit the cache.",
        "n0003 improve x=3: buggy. Four threads need a flag of the linker.",
    ]
    assert [line[:5] for line in board(journal, attempt(9, None, "", parent="n0002"))] == [
        "n0001", "n0003",
    ]  # fmt: skip


def test_what_is_no_larger_than_the_noise_says_so() -> None:
    journal = story()
    for step, value in ((6, 7.0), (7, 9.5)):
        journal.put(node(step, NodeKind.SEED, value, parent="n0002"))
    (first, _) = board(journal, attempt(9, None, "", parent="n0001"))
    assert "within the noise" in first


def test_the_largest_effects_stay_where_there_is_no_room_for_all() -> None:
    journal = story()
    for step in range(10, 60):
        words = f"Lesson {step} of many: " + "word " * 60
        journal.put(attempt(step, 10.0 - step / 10, words))
    lines = board(journal, attempt(99, None, "", parent="n0001"))
    assert sum(len(line) + 1 for line in lines) <= 1500
    assert [line[:5] for line in lines] == sorted(line[:5] for line in lines)
    assert lines[-1].startswith("n0059 improve x=59: 4.1 s (+5.9 s). Lesson 59 of many")
