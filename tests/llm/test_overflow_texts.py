"""Words of endpoints about prompts that are too long, and words that only look like it."""

from __future__ import annotations

import pytest

from taskweaver.llm.transport.failures import status_failure

OVERFLOWS = [
    "This model's maximum context length is 8192 tokens, however you requested 9000 tokens",
    "Your input exceeds the context window of this model.",
    "context_length_exceeded",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000",
    "the prompt is longer than the context length currently available to the model",
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "Range of input length should be [1, 30720]",
    "Prompt exceeds max length",
    "Invalid request: Your request exceeded model token limit: 8192",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens",
    "the request exceeds the available context size: exceed_context_size_error",
    "The number of tokens is greater than the context length of only 4096 tokens",
    "Please reduce the length of the messages.",
]


@pytest.mark.parametrize("words", OVERFLOWS)
def test_56_a_prompt_that_is_too_long_is_recognised(words: str) -> None:
    assert status_failure(400, {"error": {"message": words}}, {}, "m").kind == "context_overflow"


def test_39_words_in_a_list_are_kept() -> None:
    body = [{"error": {"code": 400, "message": f"{OVERFLOWS[5]}"}}]

    error = status_failure(400, body, {}, "m")

    assert error.kind == "context_overflow"
    assert "1048576" in error.detail


def test_60_a_limit_per_minute_is_no_overflow() -> None:
    words = "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 7000"

    assert status_failure(413, {"error": {"message": words}}, {}, "m").kind == "rate_limit"
