"""Counting what calls consume."""

from __future__ import annotations

import pytest

from taskweaver.llm.types import ChatMessage, Usage
from taskweaver.llm.usage import Prices, TokenEstimator, UsageLedger


def user(text: str) -> list[ChatMessage]:
    return [{"role": "user", "content": text}]


def test_an_estimate_follows_what_the_server_reports() -> None:
    estimator = TokenEstimator()
    messages = user("word " * 1000)
    before = estimator.estimate("m", messages, "")

    estimator.learn("m", messages, Usage(before.prompt_tokens * 2, 1))

    after = estimator.estimate("m", messages, "x" * 360)
    assert after.prompt_tokens == before.prompt_tokens * 2
    assert after.completion_tokens == 200
    assert estimator.estimate("other", messages, "").prompt_tokens == before.prompt_tokens


def test_later_reports_weigh_less_than_the_first() -> None:
    estimator = TokenEstimator()
    messages = user("word " * 1000)
    guess = estimator.estimate("m", messages, "").prompt_tokens

    estimator.learn("m", messages, Usage(guess, 1))
    estimator.learn("m", messages, Usage(guess * 2, 1))

    assert guess < estimator.estimate("m", messages, "").prompt_tokens < guess * 1.5


@pytest.mark.parametrize("reported", [1, 10**9])
def test_absurd_reports_are_not_learned_from(reported: int) -> None:
    estimator = TokenEstimator()
    messages = user("word " * 1000)
    before = estimator.estimate("m", messages, "")

    estimator.learn("m", messages, Usage(reported, 1))

    assert estimator.estimate("m", messages, "") == before


def test_nothing_is_learned_from_an_empty_prompt() -> None:
    estimator = TokenEstimator()
    estimator.learn("m", [], Usage(5, 1))

    assert estimator.estimate("m", [], "").prompt_tokens == 0


def test_other_scripts_and_images_are_counted() -> None:
    estimator = TokenEstimator()
    image: list[ChatMessage] = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10**6}},
            ],
        }
    ]

    assert 90 <= estimator.estimate("m", user("日本" * 50), "").prompt_tokens <= 120
    assert estimator.estimate("m", user("日本" * 50), "").prompt_tokens >= 90
    assert 100 < estimator.estimate("m", image, "").prompt_tokens < 5000


def test_costs_are_known_only_with_a_price() -> None:
    assert Prices().apply(Usage(10, 10)).cost is None
    assert Prices(prompt=2.0).apply(Usage(500_000, 10)).cost == 1.0
    assert Prices(completion=0.0).apply(Usage(5, 5)).cost == 0.0


def test_a_ledger_adds_up() -> None:
    ledger = UsageLedger()
    ledger.add(Usage(1, 2, 0.5, 1))
    ledger.add(Usage(3, 4, None, 1, True))

    assert ledger.total == Usage(4, 6, 0.5, 2, True)
