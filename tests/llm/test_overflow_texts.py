"""Words of endpoints about prompts that are too long, and words that only look like it."""

from __future__ import annotations

import pytest

from taskweaver.llm.providers.refusals import refused_window
from taskweaver.llm.transport.failures import status_failure

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
