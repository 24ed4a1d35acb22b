"""What endpoints refuse: asked again at once in a form that they take, and in that one later."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from claude_replies import reply, text
from fake_endpoint import Call, good, serving
from ollama_server import said
from response_events import completed, created, message
from scripted_server import RUN

from taskweaver.llm.dialects.chat import ChatDialect
from taskweaver.llm.dialects.responses import ResponsesDialect
from taskweaver.llm.dialects.switch import DialectName, DialectSwitch, dialect_named
from taskweaver.llm.errors import ModelError
from taskweaver.llm.facts import EndpointFacts
from taskweaver.llm.providers.abilities import fixed
from taskweaver.llm.providers.endpoint_service import EndpointService
from taskweaver.llm.transport.endpoint import Endpoint
from taskweaver.llm.types import ChatMessage, ModelRequest

CHAT: list[ChatMessage] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "count"},
]
ANSWERS: dict[DialectName, list[bytes]] = {
    "chat": good("x"),
    "anthropic": reply(text("x")),
    "responses": [created(), *message(0, "x"), completed()],
    "ollama": said("x"),
}
SCHEMA = {"type": "object", "properties": {"strict": {"type": "string"}}}
TOO_LARGE = "max_tokens is too large: 200000. This model supports at most 16384 completion tokens"
OF_WINDOW = (
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context"
    " length is 32768 tokens and your request has 2768 input tokens (32000 > 32768 - 2768)."
)
NO_ROOM = "input length and `max_tokens` exceed context limit: 150000 + 64000 > 200000"
LEVELS = "Unsupported value: 'reasoning_effort' does not support it. Supported values are: 'low', "
WITH_TOOLS = "Function tools with reasoning_effort are not supported for gpt-5.6 in chat."
THINK = 'invalid think value (must be "high", "medium", "low", "none")'
EXTRA = "Extra inputs are not permitted"


@dataclass(frozen=True)
class Refused:
    """A part of requests that an endpoint refuses.

    Attributes:
        path: The part.
        values: Its values in the requests of one call, all but the last refused; None for none.
        words: The endpoint's words.
        request: The request.
        error: Further fields of the error.
    """

    dialect: DialectName
    path: str
    values: list[Any]
    words: str
    request: dict[str, Any] = field(default_factory=dict)
    error: dict[str, str] = field(default_factory=dict)
    status: int = 400


def effort(*values: Any, words: str) -> Refused:
    return Refused("chat", "reasoning_effort", [*values], words, {"reasoning_effort": values[0]})


def longest(first: int, then: int, words: str) -> Refused:
    return Refused("chat", "max_tokens", [first, then], words, {"max_tokens": first})


def system(words: str, status: int = 400) -> Refused:
    return Refused("chat", "messages.0.role", ["system", "user"], words, status=status)


TOOLS = {"tools": (RUN,)}
ROWS = {
    "value": Refused("chat", "temperature", [0.5, None], "Unsupported value: 'temperature' does"
                     " not support 0.5 with this model.", {"temperature": 0.5}),
    "param": Refused("chat", "stop", [["x"], None], "Unsupported parameter", {"stop": ["x"]},
                     {"param": "stop"}),
    "unasked": Refused("chat", "stream_options.include_usage", [True, None],
                       f"{EXTRA}: stream_options"),
    "renamed": Refused("chat", "max_completion_tokens", [None, 9], "Unsupported parameter:"
                       " 'max_tokens'. Use 'max_completion_tokens'.", {"max_tokens": 9}),
    "33": Refused("chat", "parallel_tool_calls", [True, None], "Unsupported parameter:"
                  " 'parallel_tool_calls'", {**TOOLS, "extra": {"parallel_tool_calls": True}}),
    "cache key": Refused("chat", "prompt_cache_key", ["k", None], "Unrecognized request argument"
                         " supplied: prompt_cache_key", {"cache_key": "k"}),
    "longest": longest(200_000, 16_384, TOO_LARGE),
    "window": longest(32_000, 30_000, OF_WINDOW),
    "room": longest(64_000, 50_000, NO_ROOM),
    "format": Refused("chat", "response_format.type", ["json_schema", "json_object", None],
                      "response_format is not available here", {"schema": SCHEMA}),
    "32": Refused("chat", "response_format.json_schema.strict", [True, None],
                  f"{EXTRA}: response_format.json_schema.strict", {"schema": SCHEMA}),
    "nearest": effort("xhigh", "high", words=f"{LEVELS} 'medium', and 'high'."),
    "nearest above": effort("minimal", "low", words=f"{LEVELS} 'medium', and 'high'."),
    "no effort": effort("high", None, words="Unrecognized request argument: reasoning_effort"),
    "no thinking": effort("high", None, words='"m1" does not support thinking'),
    "no value": effort("high", None, words="invalid reasoning value: 'high'"),
    "never none": effort("xhigh", "high", "medium", "low", words=THINK),
    "34": Refused("chat", "reasoning_effort", ["high", "none"], WITH_TOOLS,
                  {**TOOLS, "reasoning_effort": "high"}),
    "system": system("System role not supported", 500),
    "system value": system("'messages[0].role' does not support 'system' with this model."),
    "roles": system("Conversation roles must alternate user/assistant/user/assistant/..."),
    "two roles": system("Only 'user' and 'assistant' roles are supported", 422),
    "76 deprecated": Refused("anthropic", "temperature", [0.5, None], "`temperature` is deprecated"
                             " for this model.", {"temperature": 0.5}),
    "76 both": Refused("anthropic", "top_p", [0.5, None], "`temperature` and `top_p` cannot both"
                       " be specified for this model.", {"temperature": 0.5, "top_p": 0.5}),
    "76 eager": Refused("anthropic", "tools.0.eager_input_streaming", [True, None],
                        f"tools.0.eager_input_streaming: {EXTRA}", TOOLS),
    "76 cache": Refused("anthropic", "system.0.cache_control.type", ["ephemeral", None],
                        f"system.0.cache_control: {EXTRA}"),
    "claude longest": Refused("anthropic", "max_tokens", [32_000, 8192], "max_tokens: 32000 > 8192,"
                              " which is the maximum allowed number of output tokens for m1"),
    "claude schema": Refused("anthropic", "output_config.format.type", ["json_schema", None],
                             f"output_config.format: {EXTRA}", {"schema": SCHEMA}),
    "claude effort": Refused("anthropic", "output_config.effort", ["high", None], "This model does"
                             " not support the effort parameter.", {"reasoning_effort": "high"}),
    "responses strict": Refused("responses", "tools.0.strict", [False, None],
                                "Unknown parameter: 'tools[0].strict'.", TOOLS,
                                {"param": "tools[0].strict"}),
    "summary": Refused("responses", "reasoning.summary", ["auto", None], "Your organization must be"
                       " verified to generate reasoning summaries.", {"reasoning_effort": "high"},
                       {"param": "reasoning.summary", "code": "unsupported_value"}),
    "responses effort": Refused("responses", "reasoning.effort", ["xhigh", "high"], "Unsupported"
                                " value. Supported values are: 'low', 'medium', and 'high'.",
                                {"reasoning_effort": "xhigh"}, {"param": "reasoning.effort"}),
    "include": Refused("responses", "include.0", ["reasoning.encrypted_content", None],
                       "Encrypted content is not supported with this model.",
                       error={"param": "include"}),
    "responses format": Refused("responses", "text.format.type",
                                ["json_schema", "json_object", None], "Invalid parameter:"
                                " 'text.format' of type 'json_schema' is not supported.",
                                {"schema": SCHEMA}, {"param": "text.format"}),
    "responses longest": Refused("responses", "max_output_tokens", [200_000, 128_000], "Invalid"
                                 " 'max_output_tokens': Expected a value <= 128000, but got 200000"
                                 " instead.", {"max_tokens": 200_000}),
    "responses cache key": Refused("responses", "prompt_cache_key", ["k", None], "Unrecognized"
                                   " request argument: prompt_cache_key", {"cache_key": "k"}),
    "think": Refused("ollama", "think", ["low", None], '"qwen2.5:7b" does not support thinking',
                     {"reasoning_effort": "low"}),
    "older think": Refused("ollama", "think", ["low", None], "json: cannot unmarshal string into Go"
                           " struct field ChatRequest.think of type bool",
                           {"reasoning_effort": "low"}),
    "older format": Refused("ollama", "format.type", ["object", None], "json: cannot unmarshal"
                            " object into Go struct field ChatRequest.format of type string",
                            {"schema": SCHEMA}),
    "level": Refused("ollama", "think", ["max", "high"], THINK, {"reasoning_effort": "max"}),
}  # fmt: skip


def value(body: Any, path: str) -> Any:
    """Return a part of a body; None for none."""
    for name in path.split("."):
        if isinstance(body, list):
            body = body[int(name)] if int(name) < len(body) else None
        else:
            body = body.get(name) if isinstance(body, dict) else None
    return body


@pytest.mark.parametrize("name", ROWS)
def test_a_refused_part_is_left_out_alone_and_from_then_on(name: str) -> None:
    row = ROWS[name]

    def play(call: Call) -> None:
        if value(call.body, row.path) in row.values[:-1]:
            call.refuse(row.status, row.words, **row.error)
        else:
            call.stream(ANSWERS[row.dialect])

    keyed = {"chat": ChatDialect(True), "responses": ResponsesDialect("m1", True)}
    dialect = keyed.get(row.dialect) or dialect_named(row.dialect)
    with serving(play) as endpoint:
        at = Endpoint(endpoint.url, "m1", "a-key-0123456789")
        spoken = DialectSwitch(dialect)
        with closing(
            EndpointService(EndpointFacts(at), dialects=spoken, forms=fixed("tools"))
        ) as service:
            for _ in range(2):
                chunks = service.stream(ModelRequest(CHAT, **row.request))
                assert "".join(chunk.text for chunk in chunks) == "x"
    sent = [call.body for call in endpoint.calls]
    assert [value(body, row.path) for body in sent] == [*row.values, row.values[-1]]
    assert all(("tools" in body) == ("tools" in row.request) for body in sent)
    assert all("be brief" in str(body) for body in sent)


@pytest.mark.parametrize(
    "words",
    [
        NO_ROOM.replace("150000", "199900"),
        "prompt is too long: 210000 tokens > 200000 maximum",
        "temperature must be at most 2",
        "The `reasoning_content` in the thinking mode must be passed back to the API",
        "response_format unsupported",
    ],
)
def test_other_refusals_are_errors_at_once(words: str) -> None:
    request = ModelRequest(CHAT, temperature=9.0, max_tokens=8_192, reasoning_effort="high")
    with serving(lambda call: call.refuse(400, words)) as endpoint:
        service = EndpointService(EndpointFacts(Endpoint(endpoint.url, "m1")))
        with closing(service), pytest.raises(ModelError):
            list(service.stream(request))
    assert len(endpoint.calls) == 1
