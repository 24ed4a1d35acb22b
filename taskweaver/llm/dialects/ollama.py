"""Ollama's own protocol, ``/api/chat``, in which the window can be chosen.

A message has its text, images beside the text, and arguments of calls as objects. A reply comes in
lines: text, thinking, whole calls, and the counts in the last line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from taskweaver.llm.dialects.chat import ChatDialect, tool_option
from taskweaver.llm.dialects.dialect import Dialect, ResponseFormat, Sampling, given
from taskweaver.llm.images import after_results
from taskweaver.llm.parsing.call_pieces import read_pieces
from taskweaver.llm.parsing.stream import (
    LineReader,
    ReplyEvents,
    StreamEvent,
    mapping_in,
    mappings_in,
    text_in,
)
from taskweaver.llm.types import ChatMessage, FinishReason, ModelRequest, Usage, function_of
from taskweaver.utils.parsing import json_value

_ELSEWHERE = "(An image at another address stands here; it is not shown.)"
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


def native_messages(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return messages in Ollama's form. A message with a record becomes the record's items."""
    names: dict[str, str] = {}
    found: list[dict[str, Any]] = []
    for message in messages:
        for call in message.get("tool_calls", ()):
            names[str(call.get("id"))] = function_of(call)[0]
        record = message.get("record")
        found += [dict(item) for item in record["items"]] if record else [_native(message, names)]
    return found


def _native(message: ChatMessage, names: Mapping[str, str]) -> dict[str, Any]:
    text, images = _parts(message["content"])
    native: dict[str, Any] = {"role": message["role"], "content": text}
    if images:
        native["images"] = images
    if message.get("tool_calls"):
        native["tool_calls"] = [_native_call(call) for call in message["tool_calls"]]
    if message["role"] == "function":
        native |= {"role": "tool", "tool_name": message.get("name", "")}
    elif message["role"] == "tool":
        call_id = message.get("tool_call_id", "")
        native |= {"tool_name": names.get(call_id, ""), "tool_call_id": call_id}
    return native


def _parts(content: str | list[dict[str, Any]] | None) -> tuple[str, list[str]]:
    """Return the text of a message, and the images in base64."""
    if content is None or isinstance(content, str):
        return content or "", []
    texts: list[str] = []
    images: list[str] = []
    for part in content:
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
            continue
        head, _, data = str((part.get("image_url") or {}).get("url", "")).partition(",")
        if head.startswith("data:") and head.endswith(";base64"):
            images.append(data)
        else:
            texts.append(_ELSEWHERE)
    return "\n".join(texts), images


def _native_call(call: Mapping[str, Any]) -> dict[str, Any]:
    name, arguments = function_of(call)
    named = {"name": name, "arguments": _object(arguments)}
    return {"id": call.get("id", ""), "function": named}


def _object(arguments: str) -> dict[str, Any]:
    """Return arguments as an object: Ollama refuses every later request with arguments as text."""
    value = json_value(arguments or "{}")
    if isinstance(value, dict):
        return value
    return {"arguments": arguments if value is None else value}


class OllamaEvents(ReplyEvents):
    """Reader of one reply in lines."""

    def __init__(self) -> None:
        super().__init__(LineReader())
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[Mapping[str, Any]] = []

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """The reply as one message, if the model thought before calls, else nothing."""
        if not (self._thoughts and self._calls):
            return ()
        message = {
            "role": "assistant",
            "content": "".join(self._texts),
            "thinking": "".join(self._thoughts),
            "tool_calls": list(self._calls),
        }
        return (message,)

    def _events(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        if value.get("error"):
            yield StreamEvent(error=value["error"])
            return
        message = mapping_in(value.get("message"))
        text, thought = text_in(message.get("content")), text_in(message.get("thinking"))
        self._texts += [text] if text else []
        self._thoughts += [thought] if thought else []
        self._calls += mappings_in(message.get("tool_calls"))
        is_last = value.get("done") is True
        finish: FinishReason = "length" if value.get("done_reason") == "length" else "stop"
        yield StreamEvent(
            text,
            reasoning=thought,
            calls=read_pieces(message),
            finish=finish if is_last else None,
            usage=_usage(value) if is_last else None,
            model=text_in(value.get("model")),
        )
        if is_last:
            yield StreamEvent(is_done=True)


def _usage(value: Mapping[str, Any]) -> Usage | None:
    prompt, completion = value.get("prompt_eval_count"), value.get("eval_count", 0)
    if not isinstance(prompt, int) or not isinstance(completion, int) or prompt <= 0:
        return None
    return Usage(prompt, max(completion, 0), calls=1)


class OllamaDialect(Dialect):
    """Ollama's ``/api/chat``. The endpoint's address is the server's root."""

    name: ClassVar[str] = "ollama"
    path: ClassVar[str] = "/api/chat"
    format_parameter: ClassVar[str] = "format"

    def parameters(
        self, request: ModelRequest, sampling: Sampling, response_format: ResponseFormat
    ) -> dict[str, Any]:
        """Return all of a body but the messages."""
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
            "options": {**given(options), **wanted} or None,
        }
        if request.schema is not None:
            forms = {"json_schema": dict(request.schema), "json_object": "json"}
            parameters["format"] = forms.get(response_format)
        parameters |= extra
        if request.tools:  # the schema would keep the model from its calls
            parameters.pop("format", None)
            is_wanted = request.tool_choice != "none"  # there is no tool_choice
            parameters["tools"] = tool_option(request.tools) if is_wanted else None
        return parameters

    def body(
        self, model: str, messages: Sequence[ChatMessage], parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the body of a request. Images of results follow the results."""
        native = native_messages(after_results(messages))
        return {**given(parameters), "model": model, "messages": native, "stream": True}

    def events(self) -> OllamaEvents:
        """Return a reader for the body of one reply."""
        return OllamaEvents()


class OllamaChatDialect(ChatDialect):
    """Chat completions of a server that lacks ``/api/chat``, from the same address."""

    path: ClassVar[str] = "/v1/chat/completions"
