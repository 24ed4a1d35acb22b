"""Ollama's own chat: its lines, its bodies, its refusals."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint, serving
from ollama_server import call_of, last, line

from taskweaver.llm.dialects.ollama import OllamaChatDialect, OllamaDialect
from taskweaver.llm.dialects.switch import DialectSwitch
from taskweaver.llm.errors import ModelError
from taskweaver.llm.facts import EndpointFacts
from taskweaver.llm.providers.abilities import FormLadder
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.types import ChatMessage, Chunk, ModelRequest, ModelTool

RUN = ModelTool(
    "run_python", "Run a cell.", {"type": "object", "properties": {"code": {"type": "string"}}}
)
HELLO: list[ChatMessage] = [{"role": "user", "content": "count to 3"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def at(endpoint: FakeEndpoint) -> EndpointService:
    return EndpointService(
        EndpointFacts(Endpoint(endpoint.url.removesuffix("/v1"), "qwen3:8b")),
        dialects=DialectSwitch(OllamaDialect(), fallback=OllamaChatDialect()),
        forms=FormLadder(lambda: "tools"),
    )


def ask(service: EndpointService, **request: Any) -> list[Chunk]:
    return list(service.stream(ModelRequest(**{"messages": HELLO, **request})))


def played(
    *lines: bytes, in_bytes: bool = False, **request: Any
) -> tuple[list[Chunk], dict[str, Any]]:
    body = b"".join(lines)
    cut = [body[n : n + 1] for n in range(len(body))] if in_bytes else [body]
    with serving(lambda call: call.stream(cut, content_type="application/x-ndjson")) as endpoint:
        with closing(at(endpoint)) as service:
            chunks = ask(service, **request)
        assert endpoint.calls[0].path == "/api/chat"
        return chunks, endpoint.calls[0].body


@pytest.mark.parametrize("in_bytes", [False, True])
def test_row_81_calls_come_whole_in_lines_with_objects_as_arguments(in_bytes: bool) -> None:
    first, second = call_of("a = 'é'"), call_of("a", id="call_7")
    lines = line("I count."), line(calls=[first]), line(calls=[second]), last()
    chunks, body = played(*lines, in_bytes=in_bytes, tools=[RUN])
    end = chunks[-1]
    assert "".join(chunk.text for chunk in chunks) == "I count."
    arguments = [json.loads(call.arguments) for call in end.calls]
    assert arguments == [{"code": "a = 'é'"}, {"code": "a"}]
    assert end.calls[1].id == "call_7"
    assert end.finish == "tool_calls"
    assert end.usage is not None
    assert (end.usage.prompt_tokens, end.usage.completion_tokens) == (120, 7)
    assert end.model == "qwen3:8b"
    assert body["truncate"] is False
    assert body["tools"][0]["function"]["name"] == "run_python"
    assert "format" not in body
    assert "tool_choice" not in body


def test_results_go_back_with_the_name_of_their_tool_and_calls_with_objects() -> None:
    function = {"name": "run_python", "arguments": '{"code": "1"}'}
    chat: list[ChatMessage] = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": function}]},
        {"role": "tool", "content": "1", "tool_call_id": "c1"},
    ]
    _, body = played(line("1."), last(), messages=chat, tools=[RUN])
    said, result = body["messages"][1:]
    assert said["tool_calls"][0]["function"]["arguments"] == {"code": "1"}
    assert result == {**chat[2], "tool_name": "run_python"}


def test_row_85_thinking_is_no_part_of_a_reply_in_a_format() -> None:
    thinking = line(thinking='maybe {"a": "draft"}')
    chunks, body = played(thinking, line('{"a": "42"}'), last(), schema=SCHEMA)
    assert "".join(chunk.text for chunk in chunks) == '{"a": "42"}'
    assert "".join(chunk.reasoning for chunk in chunks) == 'maybe {"a": "draft"}'
    assert body["format"] == SCHEMA
    assert not chunks[-1].record


def test_thinking_before_calls_goes_back_with_them_to_the_same_model_alone() -> None:
    lines = line(thinking="I "), line(thinking="run it"), line(calls=[call_of("1")]), last()
    body = b"".join(lines)
    with serving(lambda call: call.stream([body])) as endpoint, closing(at(endpoint)) as service:
        end = ask(service, tools=[RUN])[-1]
        call_id = end.calls[0].id
        said: ChatMessage = {"role": "assistant", "content": None, "record": end.record}
        said["tool_calls"] = [end.calls[0].to_dict()]
        result: ChatMessage = {"role": "tool", "content": "1", "tool_call_id": call_id}
        ask(service, messages=[*HELLO, said, result], tools=[RUN])
        other: ChatMessage = {**said, "record": {**end.record, "origin": "ollama elsewhere m"}}
        ask(service, messages=[*HELLO, other, result], tools=[RUN])
        own, neutral = (call.body["messages"][1] for call in endpoint.calls[1:])
    assert own["thinking"] == "I run it"
    assert own["tool_calls"] == [call_of("1")]
    assert "thinking" not in neutral
    assert neutral["tool_calls"][0]["function"]["arguments"] == {"code": "1"}


def test_images_stand_beside_the_text_in_base64() -> None:
    parts = [
        {"type": "text", "text": "What is shown?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
    ]
    _, body = played(line("A cat."), last(), messages=[{"role": "user", "content": parts}])
    (message,) = body["messages"]
    assert message["images"] == ["QUJD"]
    assert message["content"].startswith("What is shown?\n(An image at another address")


def test_sampling_stands_in_the_options_and_effort_in_think() -> None:
    sampling = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 99, "stop": ["#"]}
    extra = {"keep_alive": "1h", "options": {"top_k": 5}}
    _, body = played(line("1"), last(), **sampling, extra=extra, reasoning_effort="xhigh")
    assert body["options"] == {
        "temperature": 0.5, "top_p": 0.9, "num_predict": 99, "stop": ["#"], "top_k": 5,
    }  # fmt: skip
    assert body["think"] == "max"
    assert body["keep_alive"] == "1h"
    assert "reasoning_effort" not in body
    _, body = played(line("1"), last(), reasoning_effort="none")
    assert body["think"] is False
    _, body = played(line("1"), last())
    assert not {"think", "options", "format"} & set(body)


@pytest.mark.parametrize("more", ["", ", try pulling it first"])
def test_row_86_a_model_that_is_not_there_names_the_command_that_gets_it(more: str) -> None:
    answer = {"error": f'model "qwen3:8b" not found{more}'}
    with serving(lambda call: call.answer(404, answer)) as endpoint:
        with closing(at(endpoint)) as service, pytest.raises(ModelError) as caught:
            ask(service)
        assert len(endpoint.calls) == 1
    assert caught.value.kind == "not_found"
    assert "`ollama pull qwen3:8b`" in str(caught.value)
