"""A request in the form that a model takes, by the facts learnt of the model. Pure functions.

Messages are sent as valid UTF-8, and without secrets where they leave this machine. Reasoning and
signatures go back as they came until an endpoint refuses them. One that misses them in replies of
another model, or in examples, gets a stand-in there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast, get_args

from taskweaver.llm.dialects.dialect import LADDER, Dialect, ResponseFormat
from taskweaver.llm.learnt import HistoryForm, LearntFacts
from taskweaver.llm.records import restored
from taskweaver.llm.types import ChatMessage, Effort, ModelRequest
from taskweaver.utils.redact import mapped, redact_secrets
from taskweaver.utils.surrogates import repair

EFFORTS: tuple[Effort, ...] = get_args(Effort)
KEPT = frozenset({"model", "messages", "input", "stream", "tools", "tool_choice"})
"""Never left out: without tools the model would answer in a form that nothing reads."""

REPLY_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
NESTED = ("reasoning",)
"""Parameters whose parts are refused one by one."""

STRICT, SYSTEM = "strict", "system"
"""Names among the dropped parameters: ``strict`` of tools and schemas, and messages of a role."""

_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
_REASONING = " "  # an empty text counts as none
_BRIDGE: ChatMessage = {"role": "assistant", "content": "OK"}


def encodable(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return messages that can be sent as UTF-8: the same objects where nothing is changed."""
    return [_changed_texts(message, repair) for message in messages]


def without_secrets(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return messages that may leave this machine: known secrets and keys of known shapes masked.

    Code in them stays as it is otherwise, and so do images.
    """
    return [_changed_texts(message, redact_secrets) for message in messages]


def _changed_texts(message: ChatMessage, change: Callable[[str], str]) -> ChatMessage:
    """Return a message with changed texts, or the same object where no text changes.

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
    """Return JSON with changed texts, which stays JSON."""
    try:
        value = json.loads(text)
        new = mapped(value, change)
    except (ValueError, RecursionError):
        return change(text)
    return text if new == value else json.dumps(new, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request as sent.

    Attributes:
        facts: Facts by which it was written.
        past: Its messages with their records and stand-ins, before anything else is changed.
    """

    request: ModelRequest
    dialect: Dialect
    facts: LearntFacts
    past: Sequence[ChatMessage]
    messages: Sequence[ChatMessage]
    parameters: Mapping[str, Any]
    effort: Effort | None


def format_of(facts: LearntFacts) -> ResponseFormat:
    """Return the way to ask for JSON: the one in force, or the best."""
    return next((form for form in LADDER if form == facts.response_format), LADDER[0])


def effort_of(wanted: Effort | None, facts: LearntFacts, *, has_tools: bool) -> Effort | None:
    """Return the effort to send for a wanted one; None leaves it to the endpoint."""
    if has_tools and facts.is_effort_refused:
        return "none"
    effort: str = wanted or ""
    for _ in EFFORTS:  # a substitute may be refused, too
        effort = facts.efforts.get(effort, effort)
    return next((known for known in EFFORTS if known == effort), None)


def parameters_of(wanted: Mapping[str, Any], facts: LearntFacts) -> dict[str, Any]:
    """Return the parameters that a model takes, under the names that the model takes."""
    dropped = {*facts.dropped} - KEPT
    taken: dict[str, Any] = {}
    for asked, value in wanted.items():
        name = facts.renamed.get(asked, asked)
        if name in dropped:
            continue
        if name in REPLY_LIMITS and value:
            value = min(value, facts.longest_reply or value, facts.reply_room or value)
        if name in NESTED and isinstance(value, dict):
            value = {part: value[part] for part in value if f"{name}.{part}" not in dropped} or None
        taken[name] = value
    return lax(taken) if STRICT in dropped else taken


def lax(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters whose tools and reply's schema are without ``strict``."""
    found = dict(parameters)
    for name in ("tools", "response_format", "text"):
        if name in found:
            found[name] = _without_strict(found[name])
    return found


def _without_strict(value: Any) -> Any:
    """Return a tool or a format without ``strict``. Schemas stay unchanged."""
    if isinstance(value, list):
        return [_without_strict(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: _without_strict(item) if name in ("function", "json_schema", "format") else item
        for name, item in value.items()
        if name != "strict"
    }


def past_messages(
    messages: Sequence[ChatMessage], form: HistoryForm, origin: str
) -> list[ChatMessage]:
    """Return messages in the form in which a model takes past messages.

    Args:
        messages: The chat.
        form: The form.
        origin: Dialect, address and model that is asked.
    """
    found = restored(messages, origin if form.has_records else "")
    return [_filled(message, form) for message in found] if form.stand_ins else found


def _filled(message: ChatMessage, form: HistoryForm) -> ChatMessage:
    if not message.get("tool_calls") or "record" in message:
        return message
    filled = message.copy()
    if "reasoning" in form.stand_ins:
        filled["reasoning_content"] = _REASONING
    if "signature" in form.stand_ins:
        first, *others = message["tool_calls"]
        signed: dict[str, Any] = {**first, "extra_content": _SIGNATURE}
        filled["tool_calls"] = [signed, *others]
    return filled


def bridged(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request's body with a word of the model between results and a user's message.

    A dialect may have put messages after results, such as images.
    """
    if "messages" not in body:
        return body
    found = list(body["messages"][:1])
    for before, message in pairwise(body["messages"]):
        if before["role"] == "tool" and message["role"] == "user":
            found.append(_BRIDGE)
        found.append(message)
    return {**body, "messages": found}
