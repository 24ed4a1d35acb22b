"""Ollama's chat, the one protocol in which its window can be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from taskweaver.llm.dialects.chat import ChatDialect
from taskweaver.llm.dialects.chat_wire import tool_option
from taskweaver.llm.dialects.dialect import Sampling, given
from taskweaver.llm.dialects.ollama.events import OllamaEvents
from taskweaver.llm.dialects.ollama.messages import native_messages
from taskweaver.llm.dialects.structured import ResponseFormat
from taskweaver.llm.images import after_results
from taskweaver.llm.types import ChatMessage, ModelRequest

_THINK: dict[str, bool | str] = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "max": "max",
}
"""Values of ``think`` by effort; a version that lacks one lists those it has."""


class OllamaDialect:
    """Ollama's ``/api/chat``; the endpoint's address is the server's root."""

    name: ClassVar[str] = "ollama"
    path: ClassVar[str] = "/api/chat"
    format_parameter: ClassVar[str] = "format"

    def headers(self, _key: str, /) -> Mapping[str, str]:
        """Return none: the client's own are those of this protocol."""
        return {}

    def parameters(
        self, request: ModelRequest, sampling: Sampling, response_format: ResponseFormat
    ) -> dict[str, Any]:
        """Return all of a body but its messages."""
        extra = dict(request.extra)
        options = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "num_predict": sampling.max_tokens,
            "stop": sampling.stop,
            "seed": sampling.seed,
            "num_ctx": sampling.window,
        }
        wanted = extra.pop("options", None) or {}
        parameters: dict[str, Any] = {
            "truncate": False,
            "think": _THINK.get(sampling.reasoning_effort or ""),
            "options": {**given(options.items()), **wanted} or None,
        }
        if request.schema is not None:
            parameters["format"] = _format(request.schema, response_format)
        parameters |= extra
        if request.tools:  # the schema would keep the model from its calls
            parameters.pop("format", None)
            is_wanted = request.tool_choice != "none"  # there is no tool_choice
            parameters["tools"] = tool_option(request.tools) if is_wanted else None
        return parameters

    def body(
        self, model: str, messages: Sequence[ChatMessage], parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the body of a request; images of results follow the results."""
        native = native_messages(after_results(messages))
        return {**given(parameters.items()), "model": model, "messages": native, "stream": True}

    def events(self) -> OllamaEvents:
        """Return a reader for the body of one reply."""
        return OllamaEvents()


class OllamaChatDialect(ChatDialect):
    """Chat completions of a server that lacks ``/api/chat``, from the same address."""

    path: ClassVar[str] = "/v1/chat/completions"


def _format(schema: Mapping[str, Any], form: ResponseFormat) -> Any:
    if form == "json_schema":
        return dict(schema)
    return "json" if form == "json_object" else None
