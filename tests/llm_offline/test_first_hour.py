"""Wrong answers and endless questions of the first hour: a request is answered rightly or refused.

The requests are data (`first_hour.yaml`), judged as those of `python -m bench analyst`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.questions import asking, in_process
from bench.questions.asking import Asked
from bench.questions.model import load

REFUSED = {"first_hour-adjective"}
"""Requests that are refused: none is answered wrongly."""


@pytest.fixture(scope="module", params=["parts", pytest.param("product", marks=pytest.mark.long)])
def answers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Asked]:
    questions = load(str(Path(__file__).parent))
    if request.param == "parts":
        asked = in_process.ask(questions)
    else:
        asked = asking.ask(questions, tmp_path_factory.mktemp("project"))
    return {item.question.id: item for item in asked}


def test_no_answer_is_wrong(answers: dict[str, Asked]) -> None:
    wrong = [
        (id, [answer.text for answer in asked.answers])
        for id, asked in answers.items()
        if asked.verdict == "wrong"
    ]
    assert not wrong


def test_requests_are_answered_rightly(answers: dict[str, Asked]) -> None:
    refused = {
        id: [answer.text for answer in asked.answers]
        for id, asked in answers.items()
        if asked.verdict == "refused" and id not in REFUSED
    }
    assert not refused
