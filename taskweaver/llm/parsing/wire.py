"""The chat protocol of OpenAI-compatible endpoints: request bodies and events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jiter

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
_BROKEN_OFF = {"error", "MALFORMED_FUNCTION_CALL"}
"""Reasons for an end at which the reply is not whole."""


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
        reasoning: New text of its reasoning.
        calls: Pieces of tool calls, as they came.
    """

    text: str = ""
    refusal: str = ""
    finish: FinishReason | None = None
    usage: Usage | None = None
    error: Any = None
    model: str = ""
    reasoning: str = ""
    calls: Any = None


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
    import json

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
    delta = delta if isinstance(delta, dict) else {}
    reason = choice.get("finish_reason")
    is_whole = bool(reason) and reason not in _BROKEN_OFF
    return StreamEvent(
        _text(delta.get("content")),
        _text(delta.get("refusal")),
        _FINISH.get(str(reason), "stop") if is_whole else None,
        usage,
        model=model,
        reasoning=_reasoning(delta),
        calls=delta.get("tool_calls"),
    )


def _reasoning(delta: dict[str, Any]) -> str:
    for name in ("reasoning_content", "reasoning"):
        if isinstance(delta.get(name), str):
            return str(delta[name])
    content = delta.get("content")
    thoughts = [
        part.get("thinking")
        for part in (content if isinstance(content, list) else [])
        if isinstance(part, dict) and part.get("type") == "thinking"
    ]
    return "".join(_text(thought) for thought in thoughts)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):  # parts, of which only texts are shown
        parts = [part for part in content if isinstance(part, dict)]
        return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return ""


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
        cached_tokens=_detail(value, "prompt_tokens_details", "cached_tokens"),
        reasoning_tokens=_detail(value, "completion_tokens_details", "reasoning_tokens"),
    )


def _detail(usage: dict[str, Any], group: str, name: str) -> int:
    details = usage.get(group)
    count = details.get(name) if isinstance(details, dict) else None
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
    """Return a message with its texts changed; the same object where they stay as they are."""
    if "tool_calls" in message:
        calls = [_changed_call(call, change) for call in message["tool_calls"]]
        if calls != message["tool_calls"]:
            message = {**message, "tool_calls": calls}
    content = message["content"]
    if isinstance(content, str):
        new = change(content)
        return message if new == content else {**message, "content": new}
    parts = [
        {**part, "text": change(part["text"])} if isinstance(part.get("text"), str) else part
        for part in content
    ]
    return {**message, "content": parts}


def _changed_call(call: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return a call with its arguments changed; ids and signatures stay as they are."""
    function = call["function"]
    return {**call, "function": {**function, "arguments": change(function["arguments"])}}


def chat_body(
    model: str,
    messages: Sequence[ChatMessage],
    parameters: Mapping[str, Any],
    tools: Sequence[ModelTool] = (),
) -> dict[str, Any]:
    """Return the body of a chat request; parameters that are None are left out."""
    given = {name: value for name, value in parameters.items() if value is not None}
    if tools:
        given["tools"] = [_tool(tool) for tool in tools]
    sent = [_sent(message) for message in encodable(messages)]
    return {**given, "model": model, "messages": sent, "stream": True}


def _tool(tool: ModelTool) -> dict[str, Any]:
    function = {
        "name": tool.name, "description": tool.description, "parameters": tool.parameters,
    }  # fmt: skip
    return {"type": "function", "function": function}


def _sent(message: ChatMessage) -> Mapping[str, Any]:
    """Return a message as it is sent; one of calls alone has no content."""
    is_only_calls = "tool_calls" in message and not message["content"]
    return {**message, "content": None} if is_only_calls else message
