"""The offline analyst answers no question wrongly, and most of them rightly."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.questions.in_process import ask
from bench.questions.model import load


@pytest.mark.parametrize("folder", ["open", "held_out"])
def test_no_answer_is_wrong_and_two_thirds_are_right(folder: str) -> None:
    asked = list(ask(question for question in load(folder) if question.can_be_asked))
    wrong = [one.question.id for one in asked if one.verdict == "wrong"]
    counts = Counter(one.verdict for one in asked)
    assert wrong == []
    assert counts["right"] >= 0.65 * len(asked)
