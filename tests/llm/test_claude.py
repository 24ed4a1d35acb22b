"""Anthropic messages: requests and replies; the numbers are rows of the table of cases."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from typing import Any

import pytest
import scripted_server
from claude_replies import SIGNATURE, CacheOfServer, call, event, reply, text, thinking, unmarked
from fake_endpoint import Call, FakeEndpoint, serving
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_server import Outcome, outcome
from sizes import examples

from taskweaver.llm.dialects.switch import DialectSwitch, dialect_named
from taskweaver.llm.errors import ModelError
from taskweaver.llm.facts import EndpointFacts
from taskweaver.llm.parsing.reply import ReplyReader
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.types import ChatMessage, Effort, ModelRequest

PNG = "data:image/png;base64,iVBORw0KGgo="
CODE = "print('größer')\n" * 9
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"}


def play(*blocks: bytes, **more: Any) -> Outcome:
    return scripted_server.play(*blocks, dialect="anthropic", **more)


def sent(*messages: ChatMessage, **more: Any) -> dict[str, Any]:
    """Return the body that is sent for messages."""
    return play(*reply(text("ok")), messages=messages, **more).bodies[0]


def told(role: str, content: Any, **more: Any) -> ChatMessage:
    return {"role": role, "content": content, **more}  # type: ignore[typeddict-item,misc]


def made(id_: str, code: str) -> dict[str, Any]:
    function = {"name": "run_python", "arguments": json.dumps({"code": code})}
    return {"id": id_, "type": "function", "function": function}


def service(endpoint: FakeEndpoint, model: str) -> EndpointService:
    address = Endpoint(endpoint.url, model)
    return EndpointService(
        EndpointFacts(address), dialects=DialectSwitch(dialect_named("anthropic"))
    )


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
    result = {"type": "tool_result", "tool_use_id": "a", "content": "1"}
    error = {**result, "tool_use_id": "b", "content": "ZeroDivisionError", "is_error": True}
    assert results["content"] == [result, error, text("Pictures:")]


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
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    image = {"type": "image", "source": source}
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


MODIFIED = (
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant"
    " message cannot be modified. These blocks must remain as they were."
)


@pytest.mark.parametrize(
    "words", [MODIFIED, "messages.1.content.0: Invalid `signature` in `thinking` block"]
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

    with serving(script) as endpoint, closing(service(endpoint, "m1")) as model:
        question = told("user", "sum")
        record = list(model.stream(ModelRequest([question])))[-1].record
        answer = told("assistant", "I sum.", tool_calls=[made("abcdefghi", "1")], record=record)
        chat = [question, answer, told("tool", "1", tool_call_id="abcdefghi")]
        list(model.stream(ModelRequest(chat)))
        list(model.stream(ModelRequest([*chat, told("user", "more")])))
        answer["record"] = {**record, "items": [thinking("New."), *blocks[1:]]}
        list(model.stream(ModelRequest([question, answer, chat[2]])))
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


def bodies(
    model: str, *chats: list[ChatMessage], effort: Effort | None = None
) -> list[dict[str, Any]]:
    """Return the bodies of requests to a model."""
    with serving(lambda request: request.stream(reply(text("ok")))) as endpoint:
        with closing(service(endpoint, model)) as asked:
            for messages in chats:
                list(asked.stream(ModelRequest(messages, reasoning_effort=effort)))
        return [request.body for request in endpoint.calls]


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
    (body,) = bodies(model, [told("user", "go")], effort=effort)
    assert body.get("thinking") == thinking_
    assert body.get("output_config") == output


def test_a_model_with_a_budget_does_not_think_on_after_a_reply_without_its_reasoning() -> None:
    chat = [
        told("user", "go"),
        told("assistant", "", tool_calls=[made("a", "1")]),
        told("tool", "1", tool_call_id="a"),
    ]
    more = [*chat, told("assistant", "1"), told("user", "more")]
    found = bodies("claude-haiku-4-5", chat, more, effort="low")
    assert ["thinking" in body for body in found] == [False, True]


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
    seen = outcome(lambda request: request.stream(bodies[request.number]), dialect="anthropic")
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


KINDS = st.sampled_from(
    "message_start content_block_start content_block_delta content_block_stop message_delta error"
    " message_stop ping".split()
)

FIELDS = st.sampled_from(
    "index message content_block delta usage error model text thinking signature input id name"
    " partial_json stop_reason stop_details input_tokens output_tokens"
    " output_tokens_details".split()
)

TYPES = st.sampled_from(
    "text thinking redacted_thinking tool_use text_delta thinking_delta signature_delta"
    " input_json_delta overloaded_error".split()
)


def _typed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    fields = st.dictionaries(FIELDS, inner, max_size=4)
    return st.builds(lambda kind, more: {**more, "type": kind}, TYPES | inner, fields)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | _typed(inner),
    max_leaves=8,
)


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(KINDS, st.dictionaries(FIELDS, VALUES, max_size=4)), max_size=8))
def test_odd_events_are_read_or_refused(events: list[tuple[str, dict[str, Any]]]) -> None:
    reader = ReplyReader("m1", dialect_named("anthropic").events())
    body = b"".join(event(kind, **fields) for kind, fields in events)
    with suppress(ModelError):
        reader.feed(body)
        reader.end()
        reader.last()
