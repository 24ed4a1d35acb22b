"""The chat protocol of OpenAI-compatible endpoints: request bodies and events."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jiter

from taskweaver.llm.parsing.call_pieces import CallPiece, read_pieces
from taskweaver.llm.surrogates import repair
from taskweaver.llm.types import ChatMessage, FinishReason, ModelTool, Usage
from taskweaver.utils.redact import redact_secrets

_FINISH: dict[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
_BROKEN = frozenset({"error", "malformed_function_call"})


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a streamed reply.

    Attributes:
        text: New text of the reply.
        refusal: New text of a refusal, which some models give in place of a reply.
        finish: Reason the reply ended.
        usage: Consumption of the call.
        error: An error object, when the server failed.
        model: Name of the model that answers.
        reasoning: New text of the reasoning.
        calls: Pieces of tool calls.
        is_broken: Whether the reply ended by a failure of the model's server.
    """

    text: str = ""
    refusal: str = ""
    finish: FinishReason | None = None
    usage: Usage | None = None
    error: Any = None
    model: str = ""
    reasoning: str = ""
    calls: tuple[CallPiece, ...] = ()
    is_broken: bool = False


def read_event(data: bytes) -> StreamEvent:
    """Read the data of an event.

    Raises:
        ValueError: If it is not a JSON object.
    """
    try:
        value = jiter.from_json(data, cache_mode="keys")
    except ValueError:
        # Broken UTF-8, or half an emoji: what cannot be read becomes U+FFFD.
        text = data.decode("utf-8", "replace")
        value = _read_leniently(text)
    if not isinstance(value, dict):
        raise ValueError("an event is not a JSON object")
    return _event(value)


def _read_leniently(text: str) -> Any:
    return json.loads(text, strict=False)


def _event(value: dict[str, Any]) -> StreamEvent:
    if value.get("error"):
        return StreamEvent(error=value["error"])
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    usage = _usage(value.get("usage"))
    model = _text(value.get("model"))
    if not isinstance(choice, dict):
        return StreamEvent(usage=usage, model=model)
    delta = choice.get("delta") or choice.get("message")
    if not isinstance(delta, dict):
        delta = {}
    reason = str(choice.get("finish_reason") or "").lower()
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
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):  # parts, of which only texts are shown
        parts = [part for part in content if isinstance(part, dict)]
        return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return ""


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


def chat_body(
    model: str, messages: Sequence[ChatMessage], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the body of a chat request; parameters that are None are left out."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return {**given, "model": model, "messages": encodable(messages), "stream": True}
