"""Replies of chat completions that go back as they came: reasoning and data of the provider."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from taskweaver.llm.parsing.call_pieces import CallCollector
from taskweaver.llm.parsing.stream_event import StreamEvent
from taskweaver.llm.surrogates import repair
from taskweaver.llm.types import ChatMessage, ToolCall

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
