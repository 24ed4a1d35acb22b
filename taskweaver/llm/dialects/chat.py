"""Chat completions, the protocol of OpenAI-compatible endpoints.

Reasoning and data of the provider go back as they came, with the calls of the reply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from taskweaver.llm.dialects.dialect import (
    Dialect,
    ResponseFormat,
    Sampling,
    format_option,
    given,
)
from taskweaver.llm.images import after_results
from taskweaver.llm.parsing.call_pieces import CallCollector, is_object, read_pieces
from taskweaver.llm.parsing.stream import (
    EventReader,
    ReplyEvents,
    StreamEvent,
    mapping_in,
    mappings_in,
    text_in,
    usage_in,
)
from taskweaver.llm.types import ChatMessage, FinishReason, ModelRequest, ModelTool
from taskweaver.utils.surrogates import repair

_DETAILS, _REASONING = "reasoning_details", ("reasoning_content", "reasoning")
"""Fields of a message that go back under the name they came with."""

_PARTS = "content"
"""Field of a message whose text has parts with reasoning, which go back as they came."""

_GROWING = ("text", "summary", "data")
_FINISH: dict[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    **dict.fromkeys(("content_filter", "safety", "sensitive", "refusal"), "content_filter"),
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
_BROKEN = frozenset({"error", "malformed_function_call"})


@dataclass(frozen=True, slots=True)
class ChatDialect(Dialect):
    """Chat completions.

    Attributes:
        has_cache_key: Whether the endpoint is given the key of its cache.
    """

    has_cache_key: bool = False

    name: ClassVar[str] = "chat"
    path: ClassVar[str] = "/chat/completions"
    format_parameter: ClassVar[str] = "response_format"

    def parameters(
        self, request: ModelRequest, sampling: Sampling, response_format: ResponseFormat
    ) -> dict[str, Any]:
        """Return all of a body but the messages."""
        parameters: dict[str, Any] = {
            "stream_options": {"include_usage": True},
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "stop": sampling.stop,
            "seed": sampling.seed,
            "reasoning_effort": sampling.reasoning_effort,
            "prompt_cache_key": (request.cache_key or None) if self.has_cache_key else None,
        }
        if request.schema is not None:
            parameters["response_format"] = format_option(request.schema, response_format)
        parameters |= request.extra
        if request.tools:  # endpoints refuse tools and a schema together
            parameters.pop("response_format", None)
            parameters["tools"] = tool_option(request.tools)
            parameters["tool_choice"] = "none" if request.tool_choice == "none" else None
        return parameters

    def body(
        self, model: str, messages: Sequence[ChatMessage], parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the body of a request. Images of results follow the results."""
        sent = [_written_back(message) for message in after_results(messages)]
        return {**given(parameters), "model": model, "messages": sent, "stream": True}

    def events(self) -> ChatEvents:
        """Return a reader for the body of one reply."""
        return ChatEvents()


def tool_option(tools: Sequence[ModelTool]) -> list[dict[str, Any]]:
    """Return the ``tools`` of a request."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in tools
    ]


def _written_back(message: ChatMessage) -> Mapping[str, Any]:
    """Return a message as sent: a message with a record as received, with the message's own ids.

    The protocol has no place for failures of tools.
    """
    neutral = {key: value for key, value in message.items() if key not in {"record", "is_error"}}
    if "record" not in message:
        return neutral
    items = [item for item in message["record"]["items"] if isinstance(item, Mapping)]
    written = items[0].get("tool_calls") if len(items) == 1 else None
    own = message.get("tool_calls", [])
    if not isinstance(written, list) or len(written) != len(own):
        return neutral  # the file it was read from was changed
    if not all(isinstance(call, Mapping) for call in written):
        return neutral
    calls = [{**call, "id": mine["id"]} for call, mine in zip(written, own, strict=True)]
    return {**items[0], "role": "assistant", "tool_calls": calls}


class ChatEvents(ReplyEvents):
    """Reader of a reply in chunks, which collects the reply in the form to send back.

    A reply without calls never has to go back as it came, and endpoints differ in whether it may.
    """

    def __init__(self) -> None:
        self._chunks = EventReader()
        super().__init__(self._chunks)
        self._text: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._parts: list[dict[str, Any]] = []
        self._calls = CallCollector()
        self._has_failed = False

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that the end of the body completes."""
        for event in super().finish():
            is_whole = self._chunks.is_object and bool(event.text or event.calls)
            yield replace(event, finish="stop") if is_whole and not event.finish else event

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """The message, if the message has calls and reasoning or data of the provider goes back."""
        calls = self._calls.finish()
        returned = self._returned()
        if self._has_failed or not calls or not (returned or any(call.extra for call in calls)):
            return ()
        if not all(is_object(call.arguments) for call in calls):
            return ()  # a malformed call may never go back as a call
        text = repair("".join(self._text))
        written = [call.to_dict() for call in calls]
        return ({"role": "assistant", "content": text, **returned, "tool_calls": written},)

    def _returned(self) -> dict[str, Any]:
        """Return the reasoning under one name: servers that have several repeat it."""
        if any(part.get("type") == "thinking" for part in self._parts):
            return {_PARTS: [_joined(part) for part in self._parts]}
        if self._details:
            return {_DETAILS: self._details}
        names = [name for name in _REASONING if name in self._reasoning]
        return {name: repair("".join(self._reasoning[name])) for name in names[:1]}

    def _events(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        event = _read(value)
        self._has_failed = self._has_failed or event.error is not None
        self._text.append(event.text)
        for name in _REASONING:
            if name in event.returned:
                self._reasoning.setdefault(name, []).append(event.returned[name])
        for detail in event.returned.get(_DETAILS, ()):
            self._add_detail(detail)
        text = [{"type": "text", "text": event.text}] if event.text else []
        for part in event.returned.get(_PARTS, text):
            self._add_part(part)
        for piece in event.calls:
            self._calls.add(piece)
        yield event

    def _add_detail(self, detail: Mapping[str, Any]) -> None:
        """Add a part of the reasoning. Pieces of one part have the same index and type."""
        last = self._details[-1] if self._details else None
        if last is None or any(last.get(key) != detail.get(key) for key in ("index", "type")):
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            is_piece = name in _GROWING and isinstance(last.get(name), str)
            last[name] = last[name] + value if is_piece and isinstance(value, str) else value

    def _add_part(self, part: Mapping[str, Any]) -> None:
        """Add a part of the content. A part of the same type as the last continues the last."""
        kind = str(part.get("type"))
        last = self._parts[-1] if self._parts else None
        if last is None or last.get("type") != kind or kind not in part:
            self._parts.append(dict(part))
            return
        before, more = last.get(kind), part[kind]
        is_joined = type(before) is type(more) and isinstance(more, str | list)
        self._parts[-1] = {**last, **part, kind: before + more if is_joined else more}


def _joined(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of the content with the pieces of each text joined."""
    inner = part.get("thinking")
    if isinstance(inner, list) and all(map(_is_text, inner)):
        text = repair("".join(piece["text"] for piece in inner))
        return {**part, "thinking": [{"type": "text", "text": text}]}
    return {**part, "text": repair(part["text"])} if _is_text(part) else dict(part)


def _is_text(part: object) -> bool:
    known = mapping_in(part)
    return known.get("type") == "text" and isinstance(known.get("text"), str)


def _read(value: Mapping[str, Any]) -> StreamEvent:
    choices = value.get("choices")
    error = value.get("error")
    if not error and choices is None and any(value.get(key) for key in ("message", "detail")):
        error = value
    if error:
        return StreamEvent(error=error)
    choice = choices[0] if isinstance(choices, list) and choices else None
    usage = usage_in(value.get("usage"), "prompt", "completion")
    model = _text(value.get("model"))
    if not isinstance(choice, dict):
        return StreamEvent(usage=usage, model=model)
    delta = mapping_in(choice.get("delta") or choice.get("message"))
    reason = str(choice.get("finish_reason") or "").lower().replace("null", "")
    is_broken = reason in _BROKEN
    return StreamEvent(
        _text(delta.get("content")),
        _text(delta.get("refusal")),
        _FINISH.get(reason, "stop") if reason and not is_broken else None,
        usage,
        model=model,
        reasoning=_reasoning(delta),
        calls=read_pieces(delta),
        is_broken=is_broken,
        returned=_returned_fields(delta),
    )


def _text(content: Any) -> str:
    if isinstance(content, list):  # parts, of which only texts are shown
        return "".join(text_in(part.get("text")) for part in content if isinstance(part, dict))
    return text_in(content)


def _reasoning(delta: Mapping[str, Any]) -> str:
    """Return the reasoning in a delta; servers that give it under two names give it once."""
    parts = mappings_in(delta.get("content"))
    thoughts = [_text(part.get("thinking")) for part in parts if part.get("type") == "thinking"]
    named = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
    return named + "".join(thoughts)


def _returned_fields(delta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a delta that go back with the calls of the reply, also empty fields."""
    found: dict[str, Any] = {
        name: delta[name] for name in _REASONING if isinstance(delta.get(name), str)
    }
    for name in (_DETAILS, _PARTS):
        if isinstance(parts := delta.get(name), list):
            found[name] = [part for part in parts if isinstance(part, Mapping)]
    return found
