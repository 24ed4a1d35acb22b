"""Responses: requests, replies and refusals; the numbers are rows of the table of cases."""

from __future__ import annotations

from contextlib import closing
from threading import Event
from typing import Any

import pytest
import response_events
from fake_endpoint import Call, serving
from response_events import REASONING, call_item, completed, created, function_call, message
from scripted_server import MESSAGES, RUN, Outcome, play

from taskweaver.llm.dialects.responses import ResponsesDialect
from taskweaver.llm.dialects.switch import DialectSwitch
from taskweaver.llm.errors import ModelError
from taskweaver.llm.facts import EndpointFacts
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.transport.exchange import Deadlines
from taskweaver.llm.types import ChatMessage, Chunk, Effort, ModelRequest, Usage

CODE = '{"code": "print(1)"}'
OTHER = '{"code": "print(2)"}'
THOUGHT = "I look at the table and multiply both numbers."


def responses() -> DialectSwitch:
    return DialectSwitch(ResponsesDialect())


def read(*blocks: bytes, **more: Any) -> Outcome:
    """Return the outcome of a response of these events."""
    return play(created(), *blocks, dialects=responses(), **more)


REASONED = response_events.reasoning()
FIRST, SECOND = call_item(1, CODE), call_item(2, OTHER)
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": CODE}}


@pytest.mark.parametrize("in_bytes", [False, True], ids=["whole", "bytes"])
def test_77_calls_come_by_item(in_bytes: bool) -> None:
    blocks = [*function_call(0, FIRST), *function_call(1, SECOND), completed(FIRST, SECOND)]
    seen = read(*blocks, in_bytes=in_bytes)
    assert seen.error is None
    assert [(call.id, call.name, call.arguments) for call in seen.calls] == [
        ("call_1", "run_python", CODE),
        ("call_2", "run_python", OTHER),
    ]
    assert (seen.finish, seen.text) == ("tool_calls", "")
    assert (seen.streamed(0), seen.streamed(1)) == (CODE, OTHER)
    assert len([chunk for chunk in seen.chunks if chunk.call]) > 3 or in_bytes


ONE, TWO = function_call(0, FIRST), function_call(1, SECOND)
CALLS: dict[str, tuple[list[bytes], list[str]]] = {
    "in_turn": ([block for pair in zip(ONE, TWO, strict=True) for block in pair], [CODE, OTHER]),
    "no_pieces": ([block for block in ONE if b"arguments.delta" not in block], [CODE]),
    "items_alone": ([block for block in ONE if b"function_call_arguments" not in block], [CODE]),
    "end_of_item_alone": (ONE[-1:], [CODE]),
    "no_places": ([block.replace(b'"output_index": 0, ', b"") for block in ONE], [CODE]),
    "end_alone": ([], [CODE]),
}


@pytest.mark.parametrize("row", CALLS)
def test_77_calls_are_read_however_they_come(row: str) -> None:
    blocks, expected = CALLS[row]
    seen = read(*blocks, completed(FIRST))
    assert seen.error is None
    assert [call.arguments for call in seen.calls] == expected
    assert seen.calls[0].id == "call_1"


@pytest.mark.parametrize("in_bytes", [False, True], ids=["whole", "bytes"])
def test_a_text_comes_with_its_reasoning_and_what_it_consumed(in_bytes: bool) -> None:
    seen = read(*REASONED, *message(1, "Hel", "lo 😀"), completed(), in_bytes=in_bytes)
    assert (seen.text, seen.reasoning, seen.finish) == ("Hello 😀", THOUGHT, "stop")
    assert seen.chunks[-1].usage == Usage(90, 30, None, 1, cached_tokens=64, reasoning_tokens=20)
    assert seen.chunks[-1].model == "m1-2026"


def test_a_request_holds_the_whole_chat_and_is_not_stored() -> None:
    messages: list[ChatMessage] = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "count", "name": "Ann"},
        {"role": "assistant", "content": "I count.", "tool_calls": [CALL]},
        {"role": "tool", "content": "1", "tool_call_id": "a"},
        {"role": "assistant", "content": "It is 1."},
        {"role": "user", "content": "and now?"},
    ]
    (body,) = read(*message(0, "2"), completed(), messages=messages, max_tokens=5).bodies
    assert body["input"] == [
        {"type": "message", "role": "system", "content": "be brief"},
        {"type": "message", "role": "user", "content": "count"},
        {"type": "message", "role": "assistant", "content": "I count."},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": CODE},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "message", "role": "assistant", "content": "It is 1."},
        {"type": "message", "role": "user", "content": "and now?"},
    ]
    assert (body["store"], body["stream"], body["max_output_tokens"]) == (False, True, 16)
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["reasoning"] == {"summary": "auto"}
    tool = {"description": RUN.description, "parameters": RUN.parameters, "strict": False}
    assert body["tools"] == [{"type": "function", "name": "run_python", **tool}]
    left_out = "messages text tool_choice temperature stop seed prompt_cache_key".split()
    assert not [name for name in left_out if name in body]


def test_79_an_image_stands_inside_its_result() -> None:
    url = "data:image/png;base64,AAAA"
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "a chart"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    messages: list[ChatMessage] = [
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": parts, "tool_call_id": "a"},
    ]
    sent = [
        {"type": "input_text", "text": "a chart"},
        {"type": "input_image", "image_url": url, "detail": "auto"},
    ]
    (body,) = read(*message(0, "x"), completed(), messages=messages).bodies
    assert body["input"][0] == {"type": "message", "role": "user", "content": sent}
    assert body["input"][2] == {"type": "function_call_output", "call_id": "a", "output": sent}


def again(last: Chunk, *, changed: bool = False) -> list[ChatMessage]:
    """Return the chat after a reply whose calls were carried out."""
    calls = [call.to_dict() | {"id": f"own{at}"} for at, call in enumerate(last.calls)]
    results: list[ChatMessage] = [
        {"role": "tool", "content": "1", "tool_call_id": call["id"]} for call in calls
    ]
    reply: ChatMessage = {"role": "assistant", "content": None, "tool_calls": calls}
    reply["record"] = {**last.record, "origin": "elsewhere"} if changed else last.record
    return [{"role": "user", "content": "count"}, reply, *results]


def twice(*blocks: bytes, changed: bool = False) -> Any:
    """Return the items of a second request, after a reply of these events."""
    seen: list[Any] = []

    def script(call: Call) -> None:
        seen.append(call.body)
        call.stream([created(), *blocks])

    with serving(script) as endpoint:
        at = Endpoint(endpoint.url, "m1")
        with closing(EndpointService(EndpointFacts(at), dialects=responses())) as service:
            last = list(service.stream(ModelRequest(MESSAGES, tools=[RUN])))[-1]
            list(service.stream(ModelRequest(again(last, changed=changed), tools=[RUN])))
    return seen[1]["input"]


def test_78_an_encrypted_item_goes_back_whole_with_the_calls_it_led_to() -> None:
    items = twice(
        *REASONED,
        *function_call(1, FIRST),
        *function_call(2, SECOND),
        completed(),
    )
    assert items[1:4] == [REASONING, FIRST, SECOND]
    assert [item["call_id"] for item in items[4:]] == ["call_1", "call_2"]


def test_78_it_goes_back_to_its_origin_alone() -> None:
    items = twice(*REASONED, *function_call(1, FIRST), completed(), changed=True)
    assert [item.get("type") for item in items[1:]] == ["function_call", "function_call_output"]
    assert items[1]["call_id"] == items[2]["call_id"] == "own0"


@pytest.mark.parametrize(("effort", "seconds"), [("low", "0.2"), ("high", "0.6")])
def test_much_effort_gets_three_times_as_long(effort: Effort, seconds: str) -> None:
    limits = Deadlines(first_token_s=0.2, gap_s=5)
    with serving(Call.stall) as endpoint:
        service = EndpointService(EndpointFacts(Endpoint(endpoint.url, "m1")), deadlines=limits)
        with closing(service), pytest.raises(ModelError, match=f"no reply began for {seconds} s"):
            list(service.stream(ModelRequest(MESSAGES, reasoning_effort=effort)))


def test_63_comments_are_signs_of_life() -> None:
    def script(call: Call) -> None:
        call.start()
        for _ in range(50):
            call.send(b": still reading\n\n")
            Event().wait(0.05)
        for block in [*message(0, "x"), completed()]:
            call.send(block)
        call.end()

    limits = Deadlines(first_token_s=2, gap_s=5)
    with serving(script) as endpoint:
        at = Endpoint(endpoint.url, "m1")
        with closing(
            EndpointService(EndpointFacts(at), dialects=responses(), deadlines=limits)
        ) as service:
            chunks = list(service.stream(ModelRequest(MESSAGES)))
    assert "".join(chunk.text for chunk in chunks) == "x"
