"""Messages of a chat as items of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taskweaver.llm.types import ChatMessage

_ROLES = {"system": "system", "user": "user", "function": "user"}


def input_items(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return the items of a chat; a message with a record is the record's items, unchanged."""
    found: list[dict[str, Any]] = []
    for message in messages:
        record = message.get("record")
        found += [dict(item) for item in record["items"]] if record else _items(message)
    return found


def _items(message: ChatMessage) -> list[dict[str, Any]]:
    role, content = message["role"], message["content"]
    if role == "tool":
        call_id = message.get("tool_call_id", "")
        return [{"type": "function_call_output", "call_id": call_id, "output": _parts(content)}]
    if role != "assistant":
        return [_said(_ROLES[role], _parts(content))]
    calls = [_call(call) for call in message.get("tool_calls", ())]
    text = _text(content)
    return [_said("assistant", text), *calls] if text or not calls else calls


def _said(role: str, content: str | list[dict[str, Any]]) -> dict[str, Any]:
    # llama.cpp refuses an assistant's item without its optional type (ggml-org/llama.cpp#26394).
    return {"type": "message", "role": role, "content": content}


def _parts(content: str | list[dict[str, Any]] | None) -> str | list[dict[str, Any]]:
    """Return the content of an item: text, or texts and images."""
    if not isinstance(content, list):
        return content or ""
    return [_part(part) for part in content]


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    image = part.get("image_url")
    if isinstance(image, Mapping):
        detail = image.get("detail") or "auto"
        return {"type": "input_image", "image_url": image.get("url", ""), "detail": detail}
    return {"type": "input_text", "text": str(part.get("text", ""))}


def _text(content: str | list[dict[str, Any]] | None) -> str:
    """Return the text of a reply; replies hold no images."""
    if not isinstance(content, list):
        return content or ""
    return "\n".join(str(part["text"]) for part in content if "text" in part)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    return {
        "type": "function_call",
        "call_id": call.get("id", ""),
        "name": function.get("name", ""),
        "arguments": function.get("arguments") or "{}",
    }
