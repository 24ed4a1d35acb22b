"""Responses, asked without storage: each request has the whole chat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from taskweaver.llm.dialects.dialect import Sampling, given
from taskweaver.llm.dialects.responses.events import ResponsesEvents
from taskweaver.llm.dialects.responses.items import input_items
from taskweaver.llm.dialects.responses.models import is_plain
from taskweaver.llm.dialects.structured import ResponseFormat
from taskweaver.llm.types import ChatMessage, ModelRequest, ModelTool

_LEAST_TOKENS = 16
"""Smaller limits of a reply are refused."""


@dataclass(frozen=True, slots=True)
class ResponsesDialect:
    """Responses. It has no stop texts and no seed.

    Attributes:
        model: Name of the model; reasoning is asked for unless it is known not to reason.
        has_cache_key: Whether the endpoint is given the key of its cache.
    """

    model: str = ""
    has_cache_key: bool = False

    name: ClassVar[str] = "responses"
    path: ClassVar[str] = "/responses"
    format_parameter: ClassVar[str] = "text"

    def headers(self, _key: str, /) -> Mapping[str, str]:
        """Return none: the client's own are those of this protocol."""
        return {}

    def parameters(
        self, request: ModelRequest, sampling: Sampling, response_format: ResponseFormat
    ) -> dict[str, Any]:
        """Return all of a body but its items."""
        most = sampling.max_tokens
        parameters: dict[str, Any] = {
            "store": False,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_output_tokens": most if most is None else max(most, _LEAST_TOKENS),
            "prompt_cache_key": (request.cache_key or None) if self.has_cache_key else None,
        }
        effort = sampling.reasoning_effort
        if effort or not is_plain(self.model):
            summary = None if effort == "none" else "auto"
            parameters["reasoning"] = given({"effort": effort, "summary": summary}.items())
            parameters["include"] = ["reasoning.encrypted_content"]
        if request.schema is not None:
            form = _format(request.schema, response_format)
            parameters["text"] = form and {"format": form}
        parameters |= request.extra
        if request.tools:  # endpoints refuse tools and a schema together
            parameters.pop("text", None)
            parameters["tools"] = [_tool(tool) for tool in request.tools]
            parameters["tool_choice"] = "none" if request.tool_choice == "none" else None
        return parameters

    def body(
        self, model: str, messages: Sequence[ChatMessage], parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the body of a request."""
        items = input_items(messages)
        return {**given(parameters.items()), "model": model, "input": items, "stream": True}

    def events(self) -> ResponsesEvents:
        """Return a reader for the body of one reply."""
        return ResponsesEvents()


def _format(schema: Mapping[str, Any], form: ResponseFormat) -> dict[str, Any] | None:
    if form == "json_schema":
        return {"type": "json_schema", "name": "reply", "schema": schema, "strict": True}
    return {"type": "json_object"} if form == "json_object" else None


def _tool(tool: ModelTool) -> dict[str, Any]:
    """Return a tool; without ``strict`` its arguments would be held to a narrower schema."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": False,
    }
