"""Events and tools of chat completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taskweaver.llm.dialects.chat_replies import returned_fields
from taskweaver.llm.parsing.call_pieces import read_pieces
from taskweaver.llm.parsing.stream_event import StreamEvent, event_object, text_in
from taskweaver.llm.types import FinishReason, ModelTool, Usage

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
