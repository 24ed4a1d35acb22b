"""Requests of Anthropic messages; the numbers are rows of the table of cases."""

from __future__ import annotations

import json
from typing import Any

import pytest
from claude_endpoint import made, sent, service, told
from claude_replies import (
    SIGNATURE,
    CacheOfServer,
    call,
    reply,
    text,
    thinking,
    unmarked,
)
from fake_endpoint import Call, serving

from taskweaver.llm.types import ChatMessage, Effort, ModelRequest

PNG = "data:image/png;base64,iVBORw0KGgo="


def test_70_results_of_one_reply_are_one_message_before_any_text() -> None:
    body = sent(
        told("user", "two"),
        told("assistant", "I try.", tool_calls=[made("a", "1"), made("b", "1/0")]),
        told("tool", "1", tool_call_id="a"),
        told("tool", "ZeroDivisionError", tool_call_id="b", is_error=True),
        told("user", "Pictures:"),
    )
    _, said, results = unmarked(body["messages"])
    assert said["content"] == [text("I try."), call("a", code="1"), call("b", code="1/0")]
    assert results["role"] == "user"
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "1"},
        {
            "type": "tool_result",
            "tool_use_id": "b",
            "content": "ZeroDivisionError",
            "is_error": True,
        },
        text("Pictures:"),
    ]


def test_parameters_have_the_names_of_the_protocol() -> None:
    body = sent(told("user", "go"), stop=["END", " "], temperature=1.5, max_tokens=50)
    assert (body["stop_sequences"], body["temperature"], body["max_tokens"]) == (["END"], 1.0, 50)
    (tool,) = unmarked(body["tools"])
    assert tool["input_schema"]["required"] == ["code"]
    assert {"stop", "seed", "response_format", "stream_options", "tool_choice"}.isdisjoint(body)
    assert sent(told("user", "go"), tool_choice="none")["tool_choice"] == {"type": "none"}


def test_system_messages_stand_apart_and_roles_in_turn() -> None:
    body = sent(
        told("system", "You count."),
        told("assistant", "Hello."),
        told("user", "count"),
        told("user", "to 3"),
        told("system", "Be short."),
        told("assistant", ""),
        told("user", " "),
    )
    assert unmarked(body["system"]) == [text("You count.")]
    assert unmarked(body["messages"]) == [
        {"role": "user", "content": [text("(no text)")]},
        {"role": "assistant", "content": [text("Hello.")]},
        {"role": "user", "content": [text("count"), text("to 3"), text("Be short.")]},
        {"role": "assistant", "content": [text("(no text)")]},
        {"role": "user", "content": [text("(no text)")]},
    ]


def test_images_stand_in_messages_and_in_results() -> None:
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": PNG}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]
    body = sent(
        told("user", parts),
        told("assistant", None, tool_calls=[made("a", "1")]),
        told("tool", parts[:2], tool_call_id="a"),
    )
    shown, _, result = unmarked(body["messages"])
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
    }
    by_address = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    assert shown["content"] == [text("look"), image, by_address]
    assert result["content"][0]["content"] == [text("look"), image]


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}, "s": {"oneOf": [{"type": "string"}]}},
}


def test_a_schema_is_sent_without_bounds_and_closed() -> None:
    body = sent(told("user", "go"), tools=(), schema=SCHEMA)
    assert body["output_config"]["format"] == {
        "type": "json_schema",
        "schema": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "s": {"anyOf": [{"type": "string"}]}},
            "additionalProperties": False,
        },
    }
    assert "output_config" not in sent(told("user", "go"), schema=SCHEMA)  # beside tools


@pytest.mark.parametrize(
    "words",
    [
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant"
        " message cannot be modified. These blocks must remain as they were.",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ],
)
def test_75_refused_reasoning_is_left_out_from_then_on(words: str) -> None:
    blocks = [thinking("Sum it."), text("I sum."), call(code="1")]

    def script(request: Call) -> None:
        if request.number == 0:
            request.stream(reply(*blocks))
        elif SIGNATURE in json.dumps(request.body) and request.number == 1:
            request.refuse(400, words, type="invalid_request_error")
        else:
            request.stream(reply(text("2")))

    with serving(script) as endpoint:
        model = service(endpoint, "m1")
        question = told("user", "sum")
        record = list(model.stream(ModelRequest([question])))[-1].record
        answer = told("assistant", "I sum.", tool_calls=[made("abcdefghi", "1")], record=record)
        chat = [question, answer, told("tool", "1", tool_call_id="abcdefghi")]
        list(model.stream(ModelRequest(chat)))
        list(model.stream(ModelRequest([*chat, told("user", "more")])))
        answer["record"] = {**record, "items": [thinking("New."), *blocks[1:]]}
        list(model.stream(ModelRequest([question, answer, chat[2]])))
        model.close()
    bodies = [json.dumps(request.body) for request in endpoint.calls]
    assert [SIGNATURE in body for body in bodies] == [False, True, False, False, False]
    assert unmarked(endpoint.calls[2].body["messages"])[1]["content"] == [
        text("I sum."), call("abcdefghi", code="1"),
    ]  # fmt: skip


def test_74_the_prefix_of_a_chat_stays_in_the_cache_over_ten_turns() -> None:
    cache, before = CacheOfServer(), 0
    chat = [told("system", "You count."), told("user", "example"), told("assistant", "shown")]
    for turn in range(10):
        head = f"Files of turn {turn}: a.csv\n"  # stands before the newest question alone
        asked: list[ChatMessage] = []
        for step in range(6):
            newest = [told("user", head + f"question {turn}"), *asked]
            body = sent(*chat, *newest)
            read, blocks, marks = cache.read(body)
            assert marks <= 4
            if step:
                assert read == before  # all of the request before
            elif turn:
                assert read >= 2 + len(chat) - 1 - 17  # all but the turn before
            before = blocks
            id_ = f"id{turn}x{step}"
            asked += [
                told("assistant", "", tool_calls=[made(id_, f"{step}")]),
                told("tool", f"{step}", tool_call_id=id_),
            ]
        chat += [told("user", f"question {turn}"), *asked, told("assistant", "done")]


@pytest.mark.parametrize(
    ("model", "effort", "thinking_", "output"),
    [
        ("claude-sonnet-5-5", "high", {"type": "adaptive"}, {"effort": "high"}),
        ("claude-opus-4-6", "minimal", {"type": "adaptive"}, {"effort": "low"}),
        ("claude-opus-5", "none", {"type": "disabled"}, None),
        ("claude-haiku-4-5", "low", {"type": "enabled", "budget_tokens": 2048}, None),
        ("claude-opus-4-1-20250805", "max", {"type": "enabled", "budget_tokens": 24_576}, None),
        ("claude-opus-5", None, None, None),
    ],
)
def test_an_effort_is_asked_for_as_the_model_takes_it(
    model: str, effort: Effort | None, thinking_: Any, output: Any
) -> None:
    with serving(lambda request: request.stream(reply(text("ok")))) as endpoint:
        asked = service(endpoint, model)
        list(asked.stream(ModelRequest([told("user", "go")], reasoning_effort=effort)))
        asked.close()
    (request,) = endpoint.calls
    assert request.body.get("thinking") == thinking_
    assert request.body.get("output_config") == output


def test_a_model_with_a_budget_does_not_think_on_after_a_reply_without_its_reasoning() -> None:
    chat = [
        told("user", "go"),
        told("assistant", "", tool_calls=[made("a", "1")]),
        told("tool", "1", tool_call_id="a"),
    ]
    with serving(lambda request: request.stream(reply(text("ok")))) as endpoint:
        asked = service(endpoint, "claude-haiku-4-5")
        for messages in (chat, [*chat, told("assistant", "1"), told("user", "more")]):
            list(asked.stream(ModelRequest(messages, reasoning_effort="low")))
        asked.close()
    assert ["thinking" in request.body for request in endpoint.calls] == [False, True]
