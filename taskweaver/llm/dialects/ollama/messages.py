"""Messages of a chat as Ollama takes them: texts, images beside them, arguments as objects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from taskweaver.llm.types import ChatMessage

_ELSEWHERE = "(An image at another address stands here; it is not shown.)"


def native_messages(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return messages in Ollama's form; one with a record is the record's items."""
    names: dict[str, str] = {}
    found: list[dict[str, Any]] = []
    for message in messages:
        for call in message.get("tool_calls", ()):
            names[str(call.get("id"))] = str((call.get("function") or {}).get("name", ""))
        record = message.get("record")
        found += [dict(item) for item in record["items"]] if record else [_native(message, names)]
    return found


def _native(message: ChatMessage, names: Mapping[str, str]) -> dict[str, Any]:
    text, images = _parts(message["content"])
    native: dict[str, Any] = {"role": message["role"], "content": text}
    if images:
        native["images"] = images
    if message.get("tool_calls"):
        native["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    if message["role"] == "function":
        native |= {"role": "tool", "tool_name": message.get("name", "")}
    elif message["role"] == "tool":
        call_id = message.get("tool_call_id", "")
        native |= {"tool_name": names.get(call_id, ""), "tool_call_id": call_id}
    return native


def _parts(content: str | list[dict[str, Any]] | None) -> tuple[str, list[str]]:
    """Return the text of a message, and its images in base64."""
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


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    named = {"name": function.get("name", ""), "arguments": _object(function.get("arguments"))}
    return {"id": call.get("id", ""), "function": named}


def _object(arguments: Any) -> dict[str, Any]:
    """Return arguments as an object: Ollama refuses every later request that has them as text."""
    try:
        value = json.loads(arguments or "{}", strict=False)
    except (ValueError, TypeError, RecursionError):
        return {"arguments": str(arguments)}
    return value if isinstance(value, dict) else {"arguments": value}
