"""An endpoint whose model has a small window, refuses longer prompts, and remembers nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fake_endpoint import DONE, Call, event
from tool_replies import called

CHARS_OF_A_TOKEN = 3.4


def tokens_of(body: dict[str, Any]) -> int:
    """Return the tokens of a request, tools included."""
    return int(len(json.dumps([body["messages"], body.get("tools")])) / CHARS_OF_A_TOKEN)


def with_usage(blocks: list[bytes], tokens: int) -> list[bytes]:
    """Return the body of a reply that reports its consumption."""
    usage = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
    told = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
    return [*(block for block in blocks if b'"usage"' not in block and block != DONE), told, DONE]


@dataclass
class WindowedModel:
    """The model.

    Attributes:
        window: Tokens that fit.
        answer: Returns the answer to a request, given its newest message.
        is_silent: Whether a longer prompt is cut at its beginning instead of refused.
        taken: Bodies of the requests that were answered, without summaries.
        refused: Number of refusals.
        summaries: Number of summaries.
    """

    window: int
    answer: Callable[[str], str | list[bytes]]
    is_silent: bool = False
    taken: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0
    summaries: int = 0

    def __call__(self, call: Call) -> None:
        """Answer a request."""
        tokens = tokens_of(call.body)
        if tokens > self.window and not self.is_silent:
            self.refused += 1
            words = (
                f"This model's maximum context length is {self.window} tokens. However, your"
                f" messages resulted in {tokens} tokens."
            )
            call.refuse(400, words, code="context_length_exceeded")
            return
        newest = str(call.body["messages"][-1]["content"])
        if "## Notes so far" in newest:
            self.summaries += 1
            reply: str | list[bytes] = "The user asks for things, and gets them."
        else:
            self.taken.append(call.body)
            reply = self.answer(newest)
        blocks = [event(reply), event(finish="stop")] if isinstance(reply, str) else reply
        call.stream(with_usage(blocks, min(tokens, self.window)))


def recall(query: str) -> list[bytes]:
    """Return a reply that searches in memory."""
    return called(("recall", {"query": query}))
