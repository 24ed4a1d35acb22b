"""Replies of Anthropic messages; the numbers are rows of the table of cases."""

from __future__ import annotations

import json

import pytest
from claude_endpoint import ask, play
from claude_replies import (
    call,
    reply,
    text,
    thinking,
    unmarked,
)

CODE = "print('größer')\n" * 9

REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"}


@pytest.mark.parametrize("in_bytes", [False, True], ids=["whole", "bytes"])
def test_67_the_code_of_a_call_is_handed_on_while_it_arrives(in_bytes: bool) -> None:
    seen = play(*reply(text("I look."), call(code=CODE)), in_bytes=in_bytes)

    assert seen.error is None
    assert seen.text == "I look."
    (found,) = seen.calls
    assert (found.id, found.name) == ("toolu_1", "run_python")
    assert json.loads(found.arguments) == {"code": CODE}
    assert seen.streamed(0) == found.arguments
    assert len([chunk for chunk in seen.chunks if chunk.call]) > 10
    assert seen.finish == "tool_calls"
    assert [tool["eager_input_streaming"] for tool in seen.bodies[0]["tools"]] == [True]


def test_68_69_reasoning_is_read_and_kept_as_it_came() -> None:
    blocks = [
        thinking("Sum it."),
        REDACTED,
        text("I sum."),
        call(code="1"),
        call("toolu_2", code="2"),
    ]

    seen = play(*reply(*blocks), in_bytes=True)

    assert (seen.reasoning, seen.text) == ("Sum it.", "I sum.")
    record = seen.chunks[-1].record
    assert record["items"] == blocks
    assert record["ids"] == ["toolu_1", "toolu_2"]
    assert record["origin"].startswith("anthropic http")


def test_73_a_paused_reply_goes_on() -> None:
    searched = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"url": "u"}]}
    bodies = [
        reply(text("I search. "), searched, found, reason="pause_turn"),
        reply(text("It is 42."), call(code="1")),
    ]
    seen = ask(lambda request: request.stream(bodies[request.number]))

    assert seen.error is None
    assert seen.text == "I search. It is 42."
    assert unmarked(seen.bodies[1]["messages"][-1]) == {
        "role": "assistant",
        "content": [text("I search. "), searched, found],
    }
    assert seen.chunks[-1].record["items"] == [
        text("I search. "), searched, found, text("It is 42."), call(code="1"),
    ]  # fmt: skip
    usage = seen.chunks[-1].usage
    assert usage is not None
    assert (usage.calls, usage.completion_tokens) == (2, 50)
