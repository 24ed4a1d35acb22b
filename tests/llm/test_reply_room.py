"""Replies that an endpoint refuses to make so long, and servers that say that they are at work."""

from __future__ import annotations

import pytest
from fake_endpoint import Call, event, good, serving
from scripted_server import MESSAGES, outcome

from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.transport.exchange import Deadlines
from taskweaver.llm.types import ModelRequest

TOO_LARGE = "max_tokens is too large: 200000. This model supports at most 16384 completion tokens"
OF_WINDOW = (
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context"
    " length is 32768 tokens and your request has 2768 input tokens (32000 > 32768 - 2768)."
)
NO_ROOM = "input length and `max_tokens` exceed context limit: 199900 + 8192 > 200000"


@pytest.mark.parametrize(
    ("words", "asked", "limit"),
    [
        (TOO_LARGE, 200_000, 16_384),
        (OF_WINDOW, 32_000, 30_000),
        (NO_ROOM.replace("199900", "150000"), 64_000, 50_000),
    ],
)
def test_a_reply_that_is_too_long_is_asked_for_again_at_once(
    words: str, asked: int, limit: int
) -> None:
    def script(call: Call) -> None:
        if call.body["max_tokens"] > limit:
            call.refuse(400, words)
        else:
            call.stream(good("1 2 3"))

    seen = outcome(script, max_tokens=asked)

    assert seen.text == "1 2 3"
    assert [body["max_tokens"] for body in seen.bodies] == [asked, limit]


@pytest.mark.parametrize("words", [NO_ROOM, "prompt is too long: 210000 tokens > 200000 maximum"])
def test_a_full_window_needs_a_shorter_prompt(words: str) -> None:
    seen = outcome(lambda call: call.refuse(400, words), max_tokens=8_192)

    assert seen.error is not None
    assert len(seen.bodies) == 1


def test_63_comments_keep_a_call_alive() -> None:
    """They last longer than the wait for the first event."""

    def script(call: Call) -> None:
        call.start()
        for _ in range(40):
            call._released.wait(0.05)
            call.send(b": still at work\n\n")
        for block in [event("1 2 3"), event(finish="stop")]:
            call.send(block)
        call.end()

    deadlines = Deadlines(first_token_s=1.5, gap_s=60.0, total_s=60.0)
    with serving(script) as endpoint:
        service = EndpointService(Endpoint(endpoint.url, "m", "k"), deadlines=deadlines)
        texts = [chunk.text for chunk in service.stream(ModelRequest(MESSAGES))]
        service.close()

    assert "".join(texts) == "1 2 3"
