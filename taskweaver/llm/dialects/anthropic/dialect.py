"""Anthropic messages: headers, parameters and bodies of requests.

``effort`` and ``format`` stand beside the other parameters until the body is built, where they
share ``output_config``; ``cache_control`` and ``eager_input_streaming`` go to the blocks and tools
that they are for. So each of them is left out alone where a model rejects it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from taskweaver.llm.dialects.anthropic.cache import mark
from taskweaver.llm.dialects.anthropic.effort import as_budget, effort_parameters
from taskweaver.llm.dialects.anthropic.events import MessageEvents
from taskweaver.llm.dialects.anthropic.messages import wire_messages
from taskweaver.llm.dialects.anthropic.schema import narrowed
from taskweaver.llm.dialects.dialect import Sampling, given
from taskweaver.llm.dialects.structured import ResponseFormat
from taskweaver.llm.types import ChatMessage, ModelRequest, ModelTool

_VERSION = "2023-06-01"
_MAX_TOKENS = 32_000
"""Longest reply where none is configured: the protocol has no default, and all models that are not
retired write as much."""


class AnthropicDialect:
    """Anthropic messages."""

    name: ClassVar[str] = "anthropic"
    path: ClassVar[str] = "/messages"
    format_parameter: ClassVar[str] = "format"

    def headers(self, key: str, /) -> Mapping[str, str]:
        """Return the key and the protocol's version; the key stands in no other header."""
        return {"x-api-key": key, "anthropic-version": _VERSION, "Authorization": ""}

    def parameters(
        self, request: ModelRequest, sampling: Sampling, response_format: ResponseFormat
    ) -> dict[str, Any]:
        """Return all of a body but its messages; some under names of their own."""
        stop = [text for text in sampling.stop or () if text.strip()]
        parameters: dict[str, Any] = {
            "max_tokens": sampling.max_tokens or _MAX_TOKENS,
            "temperature": None if sampling.temperature is None else min(sampling.temperature, 1.0),
            "top_p": sampling.top_p,
            "stop_sequences": stop or None,
            "cache_control": {"type": "ephemeral"},
            **effort_parameters(sampling.reasoning_effort),
        }
        if request.schema is not None and response_format == "json_schema":
            parameters["format"] = {"type": "json_schema", "schema": narrowed(request.schema)}
        parameters |= request.extra
        if request.tools:
            parameters.pop("format", None)
            parameters["tools"] = [_tool(tool) for tool in request.tools]
            parameters["eager_input_streaming"] = True
            if request.tool_choice == "none":
                parameters["tool_choice"] = {"type": "none"}
        return given(parameters.items())

    def body(
        self, model: str, messages: Sequence[ChatMessage], parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the body of a request."""
        system, chat = wire_messages(messages)
        body = as_budget(model, {"max_tokens": _MAX_TOKENS, **parameters}, chat)
        control, is_eager = body.pop("cache_control", None), body.pop("eager_input_streaming", None)
        output = {"effort": body.pop("effort", None), "format": body.pop("format", None)}
        output = {**body.pop("output_config", {}), **given(output.items())}
        if output:
            body["output_config"] = output
        if is_eager is not None:
            body["tools"] = [{**tool, "eager_input_streaming": True} for tool in body["tools"]]
        if control is not None:
            mark(body.get("tools", []), system, chat, control)
        if system:
            body["system"] = system
        return {**body, "model": model, "messages": chat, "stream": True}

    def events(self) -> MessageEvents:
        """Return a reader for the body of one reply."""
        return MessageEvents()


def _tool(tool: ModelTool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": {"type": "object", **tool.parameters},
    }
