"""Messages that are made to fit a window, and windows that refusals name."""

from __future__ import annotations

import json

import pytest

from taskweaver.llm.errors import ModelError
from taskweaver.llm.fitting import fitted, window_of
from taskweaver.llm.types import ChatMessage


def chat(*contents: str) -> list[ChatMessage]:
    roles = ["system", *["user", "assistant"] * len(contents)]
    return [{"role": role, "content": text} for role, text in zip(roles, contents, strict=False)]  # type: ignore[misc]


def count(messages: object) -> int:
    return len(json.dumps(messages)) // 4


def test_long_outcomes_are_cut_before_messages_are_left_out() -> None:
    messages = chat("rules", "first", "x" * 40_000, "second", "answer", "third")
    kept = fitted(messages, 3_000, count)
    assert [m["role"] for m in kept] == [m["role"] for m in messages]
    assert "characters left out" in str(kept[2]["content"])
    assert kept[-1] == messages[-1]
    assert count(kept) <= 3_000


def test_of_many_messages_the_oldest_turns_go_and_rules_and_request_stay() -> None:
    messages = chat("rules", *[f"message {n}" for n in range(400)], "last question")
    kept = fitted(messages, 500, count)
    assert kept[0] == messages[0]
    assert str(kept[-1]["content"]).endswith("last question")
    assert "left out here" in str(kept[1]["content"])


@pytest.mark.parametrize(
    ("text", "tokens", "window"),
    [
        ("maximum context length is 8192 tokens. However, you requested 9011", 9_011, 8192),
        ("prompt is too long: 210,000 tokens > 200,000 maximum", 105_000, 100_000),
        ("n_prompt_tokens 5000 n_ctx 4096", 5_000, 4096),
        ("a context of 8192 tokens", 20_000, 8192),
        ("a context of 8192 tokens", 8_000, 7_600),
        ("HTTP 400: it is too long", 10_000, 6_000),
        ("only 100 words", 10_000, 6_000),
    ],
)
def test_the_window_is_read_from_a_refusal(text: str, tokens: int, window: int) -> None:
    assert window_of(ModelError("context_overflow", text), tokens) == window
