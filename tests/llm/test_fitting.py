"""Messages that are made to fit a window, and the words of endpoints about those too long."""

from __future__ import annotations

import json

import pytest

from taskweaver.llm.errors import ModelError
from taskweaver.llm.fitting import fitted, window_of
from taskweaver.llm.providers.refusals import refused_window
from taskweaver.llm.transport.failures import status_failure
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


OVERFLOWS = {
    "This model's maximum context length is 8192 tokens, however you requested 9000": 8_192,
    "Your input exceeds the context window of this model.": 0,
    "context_length_exceeded": 0,
    "prompt is too long: 210,000 tokens > 200,000 maximum": 200_000,
    "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000": 200_000,
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).":
        1_048_576,
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length": 32_768,
    "the prompt is longer than the context length currently available to the model": 0,
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.": 4_096,
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.":
        131_072,
    "Range of input length should be [1, 30720]": 30_720,
    "Prompt exceeds max length": 0,
    "Invalid request: Your request exceeded model token limit: 8192": 8_192,
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens": 4_096,
    "the request exceeds the available context size: exceed_context_size_error": 0,
    "The number of tokens is greater than the context length of only 4096 tokens": 4_096,
    "Please reduce the length of the messages.": 0,
}  # fmt: skip


@pytest.mark.parametrize("words", OVERFLOWS)
def test_56_a_prompt_that_is_too_long_is_recognised_and_its_window_read(words: str) -> None:
    assert status_failure(400, {"error": {"message": words}}, {}, "m").kind == "context_overflow"
    assert refused_window(words) == OVERFLOWS[words]


def test_the_window_beside_a_refusal_is_read() -> None:
    assert refused_window("too long", {"error": {"n_ctx": 4096}}) == 4_096


def test_39_words_in_a_list_are_kept() -> None:
    words = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)"
    error = status_failure(400, [{"error": {"code": 400, "message": words}}], {}, "m")
    assert error.kind == "context_overflow"
    assert "1048576" in error.detail


def test_60_a_limit_per_minute_is_no_overflow() -> None:
    words = "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 7000"
    assert status_failure(413, {"error": {"message": words}}, {}, "m").kind == "rate_limit"
