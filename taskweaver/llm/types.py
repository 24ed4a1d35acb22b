"""Messages, requests and replies of models: plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NotRequired, TypedDict

from taskweaver.utils.system.cancel import CancelToken

ChatRole = Literal["system", "user", "assistant", "function", "tool"]
Form = Literal["tools", "json", "fences"]
"""Form of a reply: native tool calls, a JSON object, or text with fences."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""Effort of a model's reasoning, from none to the most."""


@dataclass(frozen=True, slots=True)
class ModelTool:
    """An action that a model may call.

    Attributes:
        name: Its name.
        description: Its purpose, for the model.
        parameters: JSON schema of its arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool.

    Attributes:
        id: Its id; the result names it.
        name: Name of the tool.
        arguments: The arguments as JSON text, as the model wrote them.
        extra: Data of the provider that goes back with the call.
    """

    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the call in the form of messages."""
        function = {"name": self.name, "arguments": self.arguments}
        return {**self.extra, "id": self.id, "type": "function", "function": function}


def function_of(call: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of the tool and the arguments of a call in the form of messages."""
    function = call.get("function") or {}
    return str(function.get("name") or ""), str(function.get("arguments") or "")


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of a call that arrives.

    Attributes:
        position: Number of the call in the reply, from 0.
        name: Name of the tool, as far as it is known.
        text: New text of the arguments.
    """

    position: int
    name: str
    text: str


class ChatMessage(TypedDict):
    """One message of a chat. `content` is text, or text and image parts, or None with calls alone.

    The content of a tool's result may hold image parts (`image_part`) as that of the user's
    messages may: a dialect whose protocol takes images in results sends them there, without the
    fields ``name`` and ``instead`` (`taskweaver.llm.images.plain_parts`); one whose results are
    texts sends them in a message that follows the results (`taskweaver.llm.images.after_results`).
    A service leaves images out for a model that takes none, so that a dialect never sees them.

    `record` is the reply as its provider sent it, see `taskweaver.llm.records`. `is_error` marks a
    tool's result as a failure, for protocols that know such results.
    """

    role: ChatRole
    content: str | list[dict[str, Any]] | None
    name: NotRequired[str]
    reasoning_content: NotRequired[str]
    tool_calls: NotRequired[list[dict[str, Any]]]
    tool_call_id: NotRequired[str]
    record: NotRequired[Mapping[str, Any]]
    is_error: NotRequired[bool]


def image_part(url: str, *, name: str = "", instead: str | None = None) -> dict[str, Any]:
    """Return the part of a content that is an image.

    Args:
        url: Its address, or its content as a ``data:`` address.
        name: Its name, for a line that says which result it belongs to.
        instead: Text in its place for a model that takes no images, empty where the text beside it
            describes it; None if the message is a question about the image, which no text replaces.
    """
    part: dict[str, Any] = {"type": "image_url", "image_url": {"url": url}}
    if name:
        part["name"] = name
    if instead is not None:
        part["instead"] = instead
    return part


def format_chat_message(
    role: ChatRole,
    message: str,
    image_urls: Sequence[str] | None = None,
    name: str | None = None,
) -> ChatMessage:
    """Build a chat message, with images when there are any."""
    content: str | list[dict[str, Any]] = message
    if image_urls:
        content = [{"type": "text", "text": message}, *map(image_part, image_urls)]
    built: ChatMessage = {"role": role, "content": content}
    if name:
        built["name"] = name
    return built


@dataclass(frozen=True, slots=True)
class Usage:
    """Consumption of model calls.

    Attributes:
        prompt_tokens: Tokens read by the model.
        completion_tokens: Tokens written by the model.
        cost: Money in the configured currency; None when no price is configured.
        calls: Number of calls.
        is_estimated: Whether any of the token counts is an estimate, not the server's figure.
        cached_tokens: Tokens among those read that the server had in a cache.
        reasoning_tokens: Tokens among those written that are no part of the reply.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    calls: int = 0
    is_estimated: bool = False
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        total = self._counted(other, 1)
        return replace(
            total,
            cost=sum(known) if known else None,
            is_estimated=self.is_estimated or other.is_estimated,
        )

    def __sub__(self, other: Usage) -> Usage:
        cost = None if self.cost is None else self.cost - (other.cost or 0.0)
        return replace(self._counted(other, -1), cost=cost)

    def _counted(self, other: Usage, sign: int) -> Usage:
        """Return the tokens and calls of both, with the counts of `other` times `sign`."""
        names = "prompt_tokens completion_tokens calls cached_tokens reasoning_tokens".split()
        counts = {name: getattr(self, name) + sign * getattr(other, name) for name in names}
        return replace(self, **counts)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model.

    Attributes:
        messages: The chat so far.
        schema: JSON schema the reply should follow; None for free text.
        temperature: Sampling temperature; None leaves it to the configuration.
        max_tokens: Longest reply in tokens; None leaves it to the configuration.
        top_p: Nucleus sampling; None leaves it to the configuration.
        stop: Texts that end the reply; None leaves it to the configuration.
        tools: Actions the model may call; a request has either these or a schema.
        tool_choice: ``none`` asks for an answer in words, although there are tools.
        reasoning_effort: Effort of the reasoning; None leaves it to the configuration.
        cache_key: Name of the chat for the endpoint's cache of prompts; empty for none.
        extra: Provider-specific options passed through as they are.
        cancel: Raised to give the call up.
        on_sent: Called with the body of each request that is sent to an endpoint.
    """

    messages: Sequence[ChatMessage]
    schema: Mapping[str, Any] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    stop: Sequence[str] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    cancel: CancelToken = field(default_factory=CancelToken)
    on_sent: Callable[[Mapping[str, Any]], None] = lambda _: None
    tools: Sequence[ModelTool] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    reasoning_effort: Effort | None = None
    cache_key: str = ""


FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a streamed reply.

    A complete stream ends with exactly one chunk that has a `finish`; services raise a
    `ModelError` of kind ``truncated`` for a stream that ends without one.

    Attributes:
        text: New text; may be empty.
        finish: Reason the reply ended; None before its end.
        usage: Consumption of the call, if the server reported it.
        model: Name of the model that answered, if the server named it.
        reasoning: New text of its reasoning, which is no part of the reply.
        call: A piece of a tool call.
        calls: The whole tool calls, with `finish`.
        record: The reply as its provider sent it, with `finish`; empty where nothing in it has to
            go back.
        begins_again: Whether all text before this chunk was reasoning: its end came without a
            beginning, and `text` begins the reply.
    """

    text: str = ""
    finish: FinishReason | None = None
    usage: Usage | None = None
    model: str = ""
    reasoning: str = ""
    call: CallDelta | None = None
    calls: tuple[ToolCall, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict)
    begins_again: bool = False
