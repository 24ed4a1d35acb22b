"""Counting what calls consume."""

from __future__ import annotations

from taskweaver.llm.types import ChatMessage, Usage
from taskweaver.llm.usage import TokenEstimator


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
