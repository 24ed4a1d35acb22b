"""Ways to request a structured reply: by schema, as any JSON, or in words.

The best way an endpoint accepts is found by trial and remembered per model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from taskweaver.llm.types import ChatMessage

ResponseFormat = Literal["json_schema", "json_object", "text"]
LADDER: tuple[ResponseFormat, ...] = ("json_schema", "json_object", "text")


def format_option(schema: Mapping[str, Any], form: ResponseFormat) -> dict[str, Any] | None:
    """Return the ``response_format`` of a request; None when the form has none."""
    if form == "json_schema":
        spec = {"name": "reply", "schema": schema, "strict": True}
        return {"type": "json_schema", "json_schema": spec}
    return {"type": "json_object"} if form == "json_object" else None


def with_instruction(
    messages: Sequence[ChatMessage], schema: Mapping[str, Any], form: ResponseFormat
) -> Sequence[ChatMessage]:
    """Return messages with the schema in words, for an endpoint that does not take it as data.

    The words end the system message, so that the server's cache of the text before stays valid.
    """
    if form == "json_schema":
        return messages
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    words = f"Reply with exactly one JSON object, nothing around it, of this JSON schema:\n{text}"
    first = messages[0] if messages else None
    if first is not None and first["role"] == "system" and isinstance(first["content"], str):
        told: ChatMessage = {**first, "content": f"{first['content']}\n\n{words}"}
        return [told, *messages[1:]]
    return [{"role": "system", "content": words}, *messages]


def without_system(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return messages with the text of the system at the beginning of the user's first."""
    first = messages[0] if messages else None
    if first is None or first["role"] != "system":
        return messages
    others = list(messages[1:])
    if not others or others[0]["role"] != "user":
        return [{"role": "user", "content": first["content"]}, *others]
    content = others[0]["content"]
    part = {"type": "text", "text": first["content"]}
    told = [part, *content] if isinstance(content, list) else f"{first['content']}\n\n{content}"
    return [{**others[0], "content": told}, *others[1:]]
