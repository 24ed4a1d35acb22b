"""Chat completions, the protocol of OpenAI-compatible endpoints.

Reasoning and data of the provider go back as they came, with the calls of the reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from taskweaver.llm.dialects.dialect import ResponseFormat, Sampling, format_option, given
from taskweaver.llm.images import after_results
from taskweaver.llm.parsing.call_pieces import CallCollector, read_pieces
from taskweaver.llm.parsing.stream import EventReader, StreamEvent, event_object, text_in
from taskweaver.llm.surrogates import repair
from taskweaver.llm.types import ChatMessage, FinishReason, ModelRequest, ModelTool, ToolCall, Usage

DETAILS, REASONING = "reasoning_details", ("reasoning_content", "reasoning")
"""Fields of a message that go back under the name they came with."""

PARTS = "content"
"""Field of a message whose text has parts with reasoning, which go back as they came."""

_GROWING = ("text", "summary", "data")


class ChatReply:
    """One reply, collected as its endpoint wants it back.

    A reply without calls never has to go back as it came, and endpoints differ in whether it may.
    """

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._parts: list[dict[str, Any]] = []
        self._calls = CallCollector()
        self._has_failed = False

    def add(self, event: StreamEvent) -> None:
        """Take an event."""
        self._has_failed = self._has_failed or event.error is not None
        self._text.append(event.text)
        for name in REASONING:
            if name in event.returned:
                self._reasoning.setdefault(name, []).append(event.returned[name])
        for detail in event.returned.get(DETAILS, ()):
            self._add_detail(detail)
        text = [{"type": "text", "text": event.text}] if event.text else []
        for part in event.returned.get(PARTS, text):
            self._add_part(part)
        for piece in event.calls:
            self._calls.add(piece)

    def _add_detail(self, detail: Mapping[str, Any]) -> None:
        """Add a part of the reasoning; its pieces have the same index and type."""
        last = self._details[-1] if self._details else None
        if last is None or any(last.get(key) != detail.get(key) for key in ("index", "type")):
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            is_piece = name in _GROWING and isinstance(last.get(name), str)
            last[name] = last[name] + value if is_piece and isinstance(value, str) else value

    def _add_part(self, part: Mapping[str, Any]) -> None:
        """Add a part of the content; one of the type of the last continues that."""
        kind = str(part.get("type"))
        last = self._parts[-1] if self._parts else None
        if last is None or last.get("type") != kind or kind not in part:
            self._parts.append(dict(part))
            return
        before, more = last.get(kind), part[kind]
        is_joined = type(before) is type(more) and isinstance(more, str | list)
        self._parts[-1] = {**last, **part, kind: before + more if is_joined else more}

    def items(self) -> Sequence[Mapping[str, Any]]:
        """Return the message, if something in it has to go back; else nothing."""
        calls = self._calls.finish()
        returned = self._returned()
        if self._has_failed or not calls or not (returned or any(call.extra for call in calls)):
            return ()
        if not all(map(_is_object, calls)):
            return ()  # a malformed call may never go back as a call
        text = repair("".join(self._text))
        written = [call.to_dict() for call in calls]
        return ({"role": "assistant", "content": text, **returned, "tool_calls": written},)

    def _returned(self) -> dict[str, Any]:
        """Return the reasoning under one name: servers that have several repeat it."""
        if any(part.get("type") == "thinking" for part in self._parts):
            return {PARTS: [_joined(part) for part in self._parts]}
        if self._details:
            return {DETAILS: self._details}
        names = [name for name in REASONING if name in self._reasoning]
        return {name: repair("".join(self._reasoning[name])) for name in names[:1]}


def _joined(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of the content with the pieces of its texts joined."""
    inner = part.get("thinking")
    if isinstance(inner, list) and all(map(_is_text, inner)):
        text = repair("".join(piece["text"] for piece in inner))
        return {**part, "thinking": [{"type": "text", "text": text}]}
    return {**part, "text": repair(part["text"])} if _is_text(part) else dict(part)


def _is_text(part: object) -> bool:
    return (
        isinstance(part, Mapping)
        and part.get("type") == "text"
        and isinstance(part.get("text"), str)
    )


def returned_fields(delta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a delta that go back with the calls of the reply, also empty ones."""
    found: dict[str, Any] = {
        name: delta[name] for name in REASONING if isinstance(delta.get(name), str)
    }
    details = delta.get(DETAILS)
    if isinstance(details, list):
        found[DETAILS] = [detail for detail in details if isinstance(detail, Mapping)]
    content = delta.get(PARTS)
    if isinstance(content, list):
        found[PARTS] = [part for part in content if isinstance(part, Mapping)]
    return found


def written_back(messages: Sequence[ChatMessage]) -> list[Mapping[str, Any]]:
    """Return messages as they are sent: one with a record as it came, with its own ids.

    The protocol has no place for failures of tools.
    """
    return [_written_back(message) for message in messages]


def _written_back(message: ChatMessage) -> Mapping[str, Any]:
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


def _is_object(call: ToolCall) -> bool:
    try:
        return isinstance(json.loads(call.arguments), dict)
    except (ValueError, RecursionError):
        return False


_FINISH: dict[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    **dict.fromkeys(("content_filter", "safety", "sensitive", "refusal"), "content_filter"),
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
_BROKEN = frozenset({"error", "malformed_function_call"})


def read_event(data: bytes) -> StreamEvent:
    """Read the data of an event.

    Raises:
        UnreadableEvent: If it is not a JSON object.
    """
    return _event(event_object(data))


def _event(value: dict[str, Any]) -> StreamEvent:
    choices = value.get("choices")
    error = value.get("error")
    if not error and choices is None and any(value.get(key) for key in ("message", "detail")):
        error = value
    if error:
        return StreamEvent(error=error)
    choice = choices[0] if isinstance(choices, list) and choices else None
    usage = _usage(value.get("usage"))
    model = _text(value.get("model"))
    if not isinstance(choice, dict):
        return StreamEvent(usage=usage, model=model)
    delta = choice.get("delta") or choice.get("message")
    if not isinstance(delta, dict):
        delta = {}
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
        returned=returned_fields(delta),
    )


def _text(content: Any) -> str:
    if isinstance(content, list):  # parts, of which only texts are shown
        return "".join(text_in(part.get("text")) for part in content if isinstance(part, dict))
    return text_in(content)


def _reasoning(delta: dict[str, Any]) -> str:
    """Return the reasoning in a delta; servers that give it under two names give it once."""
    content = delta.get("content")
    parts = content if isinstance(content, list) else ()
    thoughts = [
        _text(part.get("thinking"))
        for part in parts
        if isinstance(part, dict) and part.get("type") == "thinking"
    ]
    named = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
    return named + "".join(thoughts)


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    prompt, completion = value.get("prompt_tokens"), value.get("completion_tokens")
    if not isinstance(prompt, int) or not isinstance(completion, int):
        return None
    if prompt <= 0 or completion < 0:
        return None
    return Usage(
        prompt,
        completion,
        calls=1,
        cached_tokens=_detail(value, "prompt_tokens_details", "cached_tokens")
        or _count(value.get("prompt_cache_hit_tokens")),
        reasoning_tokens=_detail(value, "completion_tokens_details", "reasoning_tokens"),
    )


def _detail(usage: dict[str, Any], group: str, name: str) -> int:
    details = usage.get(group)
    return _count(details.get(name)) if isinstance(details, dict) else 0


def _count(count: Any) -> int:
    return count if isinstance(count, int) and count > 0 else 0


def tool_option(tools: Sequence[ModelTool]) -> list[dict[str, Any]] | None:
    """Return the ``tools`` of a request; None without any."""
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
    ] or None


_DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class ChatDialect:
    """Chat completions.

    Attributes:
        has_cache_key: Whether the endpoint is given the key of its cache.
    """

    has_cache_key: bool = False

    name: ClassVar[str] = "chat"
    path: ClassVar[str] = "/chat/completions"
    format_parameter: ClassVar[str] = "response_format"

    def headers(self, _key: str, /) -> Mapping[str, str]:
        """Return none: the client's own are those of this protocol."""
        return {}

    def parameters(
        self, request: ModelRequest, sampling: Sampling, response_format: ResponseFormat
    ) -> dict[str, Any]:
        """Return all of a body but its messages."""
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
        """Return the body of a request; images of results follow the results."""
        sent = written_back(after_results(messages))
        return {**given(parameters.items()), "model": model, "messages": sent, "stream": True}

    def events(self) -> ChatEvents:
        """Return a reader for the body of one reply."""
        return ChatEvents()


class ChatEvents:
    """Reader of one reply in chunks."""

    def __init__(self) -> None:
        self._reader = EventReader()
        self._reply = ChatReply()

    def feed(self, block: bytes) -> Iterator[StreamEvent]:
        """Yield the events that a block completes."""
        return map(self._event, self._reader.feed(block))

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that the end of the body completes."""
        for event in map(self._event, self._reader.finish()):
            is_whole = self._reader.is_object and bool(event.text or event.calls)
            yield replace(event, finish="stop") if is_whole and not event.finish else event

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """The message, if it has calls and reasoning or data of the provider go back with them."""
        return self._reply.items()

    def _event(self, data: bytes) -> StreamEvent:
        if data == _DONE:
            return StreamEvent(is_done=True)
        event = read_event(data)
        self._reply.add(event)
        return event
