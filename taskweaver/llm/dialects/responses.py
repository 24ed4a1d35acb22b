"""Responses, the protocol in which OpenAI's models reason beside tools.

The endpoint stores nothing: each request has the whole chat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from taskweaver.llm.dialects.dialect import Dialect, ResponseFormat, Sampling, format_option, given
from taskweaver.llm.parsing.call_pieces import CallPiece
from taskweaver.llm.parsing.stream import (
    EventReader,
    ReplyEvents,
    StreamEvent,
    mapping_in,
    mappings_in,
    text_in,
    usage_in,
)
from taskweaver.llm.types import ChatMessage, FinishReason, ModelRequest, function_of

_REASONS = re.compile(r"(?:^|[/:])(?:o[1345](?:-|$)|gpt-(?:[5-9]|[1-9]\d)(?!\d)(?![\w.]*-chat))")
_PLAIN = re.compile(r"(?:^|[/:])(?:chatgpt-|gpt-?[34](?!\d)|gpt-\d+(?:\.\d+)?-chat)")

_ROLES = {"system": "system", "user": "user", "function": "user"}
_MOST_KEPT_CHARS = 4 << 20
"""Most of a reply that is kept to go back."""

_ENDS = frozenset(f"response.{end}" for end in ("completed", "incomplete", "failed", "cancelled"))
_PARTS = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.function_call_arguments": "arguments",
}
_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}
_TOLD = ("message", "code")
_REASONING = ("response.reasoning_summary_text", "response.reasoning_text")
_LEAST_TOKENS = 16
"""Smaller limits of a reply are refused."""


def reasons(model: str) -> bool:
    """Return whether a model of this name is known to reason."""
    return bool(_REASONS.search(model.lower()))


def is_plain(model: str) -> bool:
    """Return whether a model of this name is known not to reason."""
    return bool(_PLAIN.search(model.lower()))


def input_items(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return the items of a chat. A message with a record becomes the record's items, unchanged."""
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
    calls = [_call_item(call) for call in message.get("tool_calls", ())]
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
    """Return the text of a reply. Replies hold no images."""
    if not isinstance(content, list):
        return content or ""
    return "\n".join(str(part["text"]) for part in content if "text" in part)


def _call_item(call: Mapping[str, Any]) -> dict[str, Any]:
    name, arguments = function_of(call)
    own = {"call_id": call.get("id", ""), "name": name, "arguments": arguments or "{}"}
    return {"type": "function_call", **own}


class ResponsesEvents(ReplyEvents):
    """Reader of one response. What came in no piece is taken from the whole item."""

    def __init__(self) -> None:
        super().__init__(EventReader())
        self._places: dict[str, int] = {}
        self._begun: set[tuple[int, str]] = set()
        self._summary: tuple[int, int] | None = None
        self._items: dict[int, Mapping[str, Any]] = {}
        self._kept_chars = 0
        self._is_whole = False

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """The items of a whole response with reasoning or marked texts, else nothing."""
        if not self._is_whole or self._kept_chars > _MOST_KEPT_CHARS:
            return ()
        items = [item for _, item in sorted(self._items.items())]
        # Reasoning is whole without the server's storage if it is encrypted.
        kept = [
            item
            for item in items
            if item.get("type") != "reasoning" or item.get("encrypted_content")
        ]
        is_own = any(item.get("type") == "reasoning" or item.get("phase") for item in kept)
        return kept if is_own else ()

    def _events(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        kind = str(value.get("type") or "")
        if kind == "error" or (value.get("error") and not kind):
            yield StreamEvent(error=_error(value.get("error") or value))
        elif kind in _ENDS:
            yield from self._end(kind.removeprefix("response."), mapping_in(value.get("response")))
        elif not kind and value.get("object") == "response":  # a body that is no stream
            yield from self._end("", value)
        elif kind == "response.created":
            yield StreamEvent(model=text_in(mapping_in(value.get("response")).get("model")))
        elif kind.startswith("response.output_item."):
            is_done = kind.endswith("done")
            item = mapping_in(value.get("item"))
            yield from self._item(self._place(value, item), item, is_done=is_done)
        elif kind.endswith((".delta", ".done")):
            yield from self._piece(kind, value)

    def _place(self, value: Mapping[str, Any], item: Mapping[str, Any]) -> int:
        """Return the place of an item in the response; by its id where the event has none."""
        place = value.get("output_index")
        if isinstance(place, int):
            return place
        return self._places.setdefault(
            text_in(value.get("item_id") or item.get("id")), len(self._places)
        )

    def _piece(self, kind: str, value: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Yield a piece of an item, or a whole part of which no piece came."""
        name, _, step = kind.rpartition(".")
        place = self._place(value, {})
        part = _PARTS.get(name)
        if part:
            text = text_in(value.get("delta", value.get(part)))
            yield from self._new(place, part, step, text)
        elif name in _REASONING and step == "delta":
            summary = (place, value.get("summary_index", 0))
            gap = "\n\n" if self._summary not in (None, summary) else ""
            self._summary = summary
            self._begun.add((place, "reasoning"))
            yield StreamEvent(reasoning=gap + text_in(value.get("delta")))

    def _new(self, place: int, what: str, step: str, text: str) -> Iterator[StreamEvent]:
        """Yield a piece, or a whole of which no piece came."""
        if not text or (step == "done" and (place, what) in self._begun):
            return
        self._begun.add((place, what))
        if what == "text":
            yield StreamEvent(text)
        elif what == "refusal":
            yield StreamEvent(refusal=text)
        else:
            yield StreamEvent(calls=(CallPiece(place, "", "", text, {}),))

    def _item(self, place: int, item: Mapping[str, Any], *, is_done: bool) -> Iterator[StreamEvent]:
        """Yield what an item has that came in no piece."""
        kind = item.get("type")
        if is_done:
            self._items[place] = item
            self._kept_chars += len(str(item))
        if kind == "function_call":
            if (place, "call") not in self._begun:
                self._begun.add((place, "call"))
                call_id, name = text_in(item.get("call_id")), text_in(item.get("name"))
                yield StreamEvent(calls=(CallPiece(place, call_id, name, "", {}),))
            if is_done:
                yield from self._new(place, "arguments", "done", text_in(item.get("arguments")))
        elif kind == "message" and is_done:
            for what in ("text", "refusal"):
                parts = [text_in(part.get(what)) for part in mappings_in(item.get("content"))]
                yield from self._new(place, what, "done", "".join(parts))
        elif kind == "reasoning" and is_done and (place, "reasoning") not in self._begun:
            self._begun.add((place, "reasoning"))
            parts = [text_in(part.get("text")) for part in mappings_in(item.get("summary"))]
            yield StreamEvent(reasoning="\n\n".join(parts))

    def _end(self, status: str, response: Mapping[str, Any]) -> Iterator[StreamEvent]:
        status = text_in(response.get("status")) or status
        usage, model = (
            usage_in(response.get("usage"), "input", "output"),
            text_in(response.get("model")),
        )
        if status == "failed" or response.get("error"):
            yield StreamEvent(usage=usage, model=model)
            yield StreamEvent(error=_error(response.get("error")))
            return
        if not self._begun and not self._items:
            for place, item in enumerate(mappings_in(response.get("output"))):
                yield from self._item(place, item, is_done=True)
        self._is_whole = status == "completed"
        reason = text_in(mapping_in(response.get("incomplete_details")).get("reason"))
        finish = "stop" if self._is_whole else _INCOMPLETE.get(reason)
        yield StreamEvent(finish=finish, usage=usage, model=model, is_broken=finish is None)


def _error(error: Any) -> Any:
    if error and not isinstance(error, Mapping):
        return error
    known = {name: value for name, value in mapping_in(error).items() if name in _TOLD and value}
    return known or "the response failed without an explanation"


@dataclass(frozen=True, slots=True)
class ResponsesDialect(Dialect):
    """Responses, a protocol without stop texts and seeds.

    Attributes:
        model: Name of the model; reasoning is asked for unless it is known not to reason.
        has_cache_key: Whether the endpoint is given the key of its cache.
    """

    model: str = ""
    has_cache_key: bool = False

    name: ClassVar[str] = "responses"
    path: ClassVar[str] = "/responses"
    format_parameter: ClassVar[str] = "text"

    def parameters(
        self, request: ModelRequest, sampling: Sampling, response_format: ResponseFormat
    ) -> dict[str, Any]:
        """Return all of a body but the items."""
        most = sampling.max_tokens
        parameters: dict[str, Any] = {
            "store": False,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_output_tokens": most if most is None else max(most, _LEAST_TOKENS),
            "prompt_cache_key": (request.cache_key or None) if self.has_cache_key else None,
        }
        effort = sampling.reasoning_effort
        if effort or not is_plain(self.model):
            summary = None if effort == "none" else "auto"
            parameters["reasoning"] = given({"effort": effort, "summary": summary})
            parameters["include"] = ["reasoning.encrypted_content"]
        if request.schema is not None:
            option = format_option(request.schema, response_format)
            parameters["text"] = option and {
                "format": {"type": option["type"], **option.get("json_schema", {})}
            }
        parameters |= request.extra
        if request.tools:  # endpoints refuse tools and a schema together
            parameters.pop("text", None)
            parameters["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                    "strict": False,  # it would hold arguments to a narrower schema
                }
                for tool in request.tools
            ]
            parameters["tool_choice"] = "none" if request.tool_choice == "none" else None
        return parameters

    def body(
        self, model: str, messages: Sequence[ChatMessage], parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the body of a request."""
        items = input_items(messages)
        return {**given(parameters), "model": model, "input": items, "stream": True}

    def events(self) -> ResponsesEvents:
        """Return a reader for the body of one reply."""
        return ResponsesEvents()
