"""Messages as they may be sent: valid UTF-8, and without secrets where they leave this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

from taskweaver.llm.surrogates import repair
from taskweaver.llm.types import ChatMessage
from taskweaver.utils.redact import redact_secrets


def encodable(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return messages that can be sent as UTF-8; the same objects where nothing is changed."""
    return [_changed(message, repair) for message in messages]


def without_secrets(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return messages that may leave this machine: known secrets and keys of known shapes masked.

    Code in them stays as it is otherwise, and so do images.
    """
    return [_changed(message, redact_secrets) for message in messages]


def _changed(message: ChatMessage, change: Callable[[str], str]) -> ChatMessage:
    """Return a message with its texts changed; the same object where they stay as they are.

    Arguments of tool calls are texts; ids and data of the provider stay.
    """
    changed: dict[str, Any] = {}
    content = message["content"]
    if isinstance(content, str):
        changed["content"] = change(content)
    elif content is not None:
        changed["content"] = [
            {**part, "text": change(part["text"])} if isinstance(part.get("text"), str) else part
            for part in content
        ]
    if message.get("tool_calls"):
        changed["tool_calls"] = [_changed_call(call, change) for call in message["tool_calls"]]
    if all(message[name] == value for name, value in changed.items()):  # type: ignore[literal-required]
        return message
    return cast("ChatMessage", {**message, **changed})


def _changed_call(call: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    arguments = _changed_json(function["arguments"], change)
    return {**call, "function": {**function, "arguments": arguments}}


def _changed_json(text: str, change: Callable[[str], str]) -> str:
    """Return JSON with its texts changed, so that it stays JSON."""
    try:
        value = json.loads(text)
        new = _changed_value(value, change)
    except (ValueError, RecursionError):
        return change(text)
    return text if new == value else json.dumps(new, ensure_ascii=False)


def _changed_value(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_changed_value(item, change) for item in value]
    if isinstance(value, dict):
        return {change(name): _changed_value(item, change) for name, item in value.items()}
    return value
