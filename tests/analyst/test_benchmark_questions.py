"""The offline analyst answers no question wrongly, and most of them rightly."""

from __future__ import annotations

from collections import Counter

import pytest
from sizes import some, spread

from bench.questions.in_process import ask
from bench.questions.model import load


@pytest.mark.parametrize(
    ("folder", "step"), [("open", 4), pytest.param("held_out", 2, marks=pytest.mark.long)]
)
def test_no_answer_is_wrong_and_two_thirds_are_right(folder: str, step: int) -> None:
    questions = spread([question for question in load(folder) if question.can_be_asked], step)
    asked = list(ask(some(questions, -(-len(questions) // step))))
    groups = {question.group for question in questions}
    assert {one.question.group for one in asked} == groups, "some of each kind are asked"
    wrong = [one.question.id for one in asked if one.verdict == "wrong"]
    counts = Counter(one.verdict for one in asked)
    assert wrong == []
    assert counts["right"] >= 0.65 * len(asked)
