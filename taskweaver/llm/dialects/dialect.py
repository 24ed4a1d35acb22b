"""The seam between a model's endpoint and the endpoint's protocol.

A structured reply is requested by schema, as any JSON, or in words: the best way that an endpoint
accepts is found by trial and remembered per model.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from taskweaver.llm.parsing.stream import ReplyEvents
from taskweaver.llm.types import ChatMessage, Effort, ModelRequest

ResponseFormat = Literal["json_schema", "json_object", "text"]
LADDER: tuple[ResponseFormat, ...] = ("json_schema", "json_object", "text")

_UNKNOWN = frozenset(
    (
        "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems"
        " uniqueItems minProperties maxProperties"
    ).split()
)
_BY_NAME = frozenset({"properties", "$defs", "definitions"})


def format_option(schema: Mapping[str, Any], form: ResponseFormat) -> dict[str, Any] | None:
    """Return the ``response_format`` of a request, or None for replies as text."""
    if form == "json_schema":
        spec = {"name": "reply", "schema": schema, "strict": True}
        return {"type": "json_schema", "json_schema": spec}
    return {"type": "json_object"} if form == "json_object" else None


def narrowed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without bounds, in which objects hold the named members and no more."""
    found: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _BY_NAME and isinstance(value, Mapping):
            found[name] = {key: _narrowed(part) for key, part in value.items()}
        elif name == "oneOf":
            found["anyOf"] = _narrowed(value)
        elif name not in _UNKNOWN and not (name == "minItems" and value not in (0, 1)):
            found[name] = _narrowed(value)
    if "properties" in found:
        found.setdefault("additionalProperties", False)
    return found


def _narrowed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return narrowed(value)
    return [_narrowed(part) for part in value] if isinstance(value, list) else value


def with_instruction(
    messages: Sequence[ChatMessage], schema: Mapping[str, Any], form: ResponseFormat
) -> Sequence[ChatMessage]:
    """Return messages with the schema in words, for an endpoint that takes no schema as data.

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


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters for requests without parameters. None leaves a parameter to the endpoint.

    Attributes:
        window: Tokens of the window that the server loads the model with, where a request says so.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: Sequence[str] | None = None
    seed: int | None = None
    reasoning_effort: Effort | None = None
    window: int | None = None

    def of(self, request: ModelRequest) -> Sampling:
        """Return the parameters of a request, filled up with these defaults."""
        names = ("temperature", "top_p", "max_tokens", "stop", "reasoning_effort")
        return replace(self, **given({name: getattr(request, name) for name in names}))


class Dialect(ABC):
    """A protocol of model endpoints. Implementations are immutable.

    Attributes:
        name: Its name, as records of replies carry it.
        path: Path of requests, after the endpoint's address.
        format_parameter: Name of the parameter that asks for a structured reply.
    """

    name: ClassVar[str]
    path: ClassVar[str]
    format_parameter: ClassVar[str]

    def headers(self, _key: str, /) -> Mapping[str, str]:
        """Return the headers of a request beyond those of OpenAI's client.

        An empty one removes a header.
        """
        return {}

    @abstractmethod
    def parameters(
        self, request: ModelRequest, sampling: Sampling, response_format: ResponseFormat
    ) -> dict[str, Any]:
        """Return all of a body but the messages. Values that are None are not sent.

        Args:
            request: The request.
            sampling: Its sampling.
            response_format: The way to ask for a structured reply, if it has a schema and no
                tools.
        """

    @abstractmethod
    def body(
        self, model: str, messages: Sequence[ChatMessage], parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the body of a request.

        Args:
            model: Name of the model.
            messages: The chat; one with a ``record`` is sent as the record's items.
            parameters: Result of `parameters`, less those that the model rejects.
        """

    @abstractmethod
    def events(self) -> ReplyEvents:
        """Return a reader for the body of one reply."""


def given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that have a value."""
    return {name: value for name, value in parameters.items() if value is not None}
