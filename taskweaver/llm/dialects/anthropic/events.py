"""Events of a reply: blocks of text, reasoning and calls that grow, usage, and the reason it ends.

A reply with blocks that the server wants back (reasoning with signatures, results of its own tools)
is kept whole, block by block.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taskweaver.llm.dialects.anthropic.messages import call_input
from taskweaver.llm.parsing.call_pieces import CallPiece
from taskweaver.llm.parsing.sse import EventReader
from taskweaver.llm.parsing.stream_event import StreamEvent, UnreadableEvent, event_object, text_in
from taskweaver.llm.types import FinishReason, Usage

MAX_KEPT_CHARS = 8 << 20
"""Longest signatures and results of the server's own tools in a reply, all together."""

_DONE = b"[DONE]"
_FINISH: dict[str, FinishReason] = {"max_tokens": "length", "tool_use": "tool_calls"}
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_GROWTH = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_PLAIN = frozenset({"text", "tool_use"})


@dataclass(slots=True)
class _OpenBlock:
    """A block that grows.

    Attributes:
        block: The block as it began.
        texts: Pieces by the field that they extend.
        position: Number of the call that it is; None for other blocks.
    """

    block: dict[str, Any]
    texts: dict[str, list[str]] = field(default_factory=dict)
    position: int | None = None

    def whole(self) -> dict[str, Any] | None:
        """Return the block as it goes back; None if it is broken."""
        block = dict(self.block)
        for name, texts in self.texts.items():
            if name != "input":
                block[name] = str(block.get(name) or "") + "".join(texts)
            else:
                block[name] = call_input("".join(texts))
        return None if block.get("input", {}) is None else block


class MessageEvents:
    """Reader of one reply, which may come in several bodies."""

    def __init__(self) -> None:
        self._reader = EventReader()
        self._open: dict[int, _OpenBlock] = {}
        self._blocks: list[dict[str, Any]] = []
        self._counts: dict[str, int] = {}
        self._calls = 0
        self._kept_chars = 0
        self._is_broken = False

    def feed(self, block: bytes) -> Iterator[StreamEvent]:
        """Yield the events that a block completes."""
        for data in self._reader.feed(block):
            yield from self._events(data)

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that the end of the body completes."""
        for data in self._reader.finish():
            yield from self._events(data)

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """All blocks, if one of them has to go back as it came."""
        is_plain = all(block["type"] in _PLAIN for block in self._blocks)
        return () if is_plain or self._is_broken else tuple(self._blocks)

    def _events(self, data: bytes) -> Iterator[StreamEvent]:
        if data == _DONE:
            yield StreamEvent(is_done=True)
            return
        value = event_object(data)
        if value.get("type") != "message":
            yield self._read(value)
            return
        yield self._read({"type": "message_start", "message": value})  # a body that is no stream
        for index, block in enumerate(value.get("content") or ()):
            begun = {"type": "content_block_start", "index": index, "content_block": block}
            yield self._read(begun)
            yield self._read({"type": "content_block_stop", "index": index})
        yield self._read({"type": "message_delta", "delta": value, "usage": value.get("usage")})

    def _read(self, value: Mapping[str, Any]) -> StreamEvent:
        event = StreamEvent()
        match value.get("type"):
            case "message_start":
                event = self._start(_mapping(value.get("message")))
            case "content_block_start":
                event = self._begin(_index(value), _mapping(value.get("content_block")))
            case "content_block_delta":
                event = self._grow(_index(value), _mapping(value.get("delta")))
            case "content_block_stop":
                event = self._end_block(_index(value))
            case "message_delta":
                event = self._end(_mapping(value.get("delta")), _mapping(value.get("usage")))
            case "message_stop":
                event = StreamEvent(is_done=True)
            case _ if value.get("error"):
                event = StreamEvent(error=_with_status(value["error"]))
        return event

    def _start(self, message: Mapping[str, Any]) -> StreamEvent:
        self._open.clear()
        self._counts.clear()
        self._count(_mapping(message.get("usage")))
        return StreamEvent(model=str(message.get("model") or ""))

    def _begin(self, index: int, block: Mapping[str, Any]) -> StreamEvent:
        kind = str(block.get("type"))
        opened = _OpenBlock({**block, "type": kind})
        self._open[index] = opened
        if kind in _PLAIN:
            text = text_in(block.get("text"))
        else:
            self._keep(json.dumps(block))
            text = ""
        if kind != "tool_use":
            return StreamEvent(text, reasoning=str(block.get("thinking") or ""))
        opened.position, self._calls = self._calls, self._calls + 1
        return StreamEvent(calls=(_piece(opened, ""),))

    def _grow(self, index: int, delta: Mapping[str, Any]) -> StreamEvent:
        opened = self._open.get(index)
        kind = str(delta.get("type"))
        name = "input" if kind == "input_json_delta" else _GROWTH.get(kind)
        if opened is None or name is None:  # such as a citation
            return StreamEvent()
        text = text_in(delta.get("partial_json" if name == "input" else name))
        opened.texts.setdefault(name, []).append(text)
        if name == "text":
            return StreamEvent(text)
        if name == "thinking":
            return StreamEvent(reasoning=text)
        if opened.position is not None:
            return StreamEvent(calls=(_piece(opened, text),))
        self._keep(text)
        return StreamEvent()

    def _end_block(self, index: int) -> StreamEvent:
        opened = self._open.pop(index, None)
        if opened is None:
            return StreamEvent()
        block = opened.whole()
        self._is_broken = self._is_broken or block is None
        if block is not None and (block["type"] != "text" or str(block.get("text")).strip()):
            self._blocks.append(block)
        given = opened.block.get("input")
        if opened.position is not None and given and "input" not in opened.texts:
            return StreamEvent(calls=(_piece(opened, json.dumps(given, ensure_ascii=False)),))
        return StreamEvent()

    def _end(self, delta: Mapping[str, Any], counts: Mapping[str, Any]) -> StreamEvent:
        self._count(counts)
        usage, reason = self._usage(), delta.get("stop_reason")
        if reason == "pause_turn":
            return StreamEvent(usage=usage, paused=tuple(self._blocks))
        if reason == "model_context_window_exceeded":
            words = "the reply reached the end of the model's context window"
            return StreamEvent(usage=usage, error={"message": words, "code": 400, "type": reason})
        if reason == "refusal":
            return StreamEvent(usage=usage, finish="content_filter", refusal=_refusal(delta))
        finish = _FINISH.get(str(reason), "stop") if reason else None
        return StreamEvent(usage=usage, finish=finish)

    def _count(self, counts: Mapping[str, Any]) -> None:
        """Take counts; those of the end include those of the beginning."""
        details = _mapping(counts.get("output_tokens_details"))
        for name, count in {**counts, **details}.items():
            if isinstance(count, int) and count > 0:
                self._counts[name] = count

    def _usage(self) -> Usage | None:
        """Return the consumption: tokens from the cache and into it are not among the input's."""
        prompt = sum(self._counts.get(name, 0) for name in _INPUTS)
        if not prompt:
            return None
        return Usage(
            prompt,
            self._counts.get("output_tokens", 0),
            calls=1,
            cached_tokens=self._counts.get("cache_read_input_tokens", 0),
            reasoning_tokens=self._counts.get("thinking_tokens", 0),
        )

    def _keep(self, text: str) -> None:
        self._kept_chars += len(text)
        if self._kept_chars > MAX_KEPT_CHARS:
            raise UnreadableEvent(b"more signatures and results than a reply may have")


def _piece(opened: _OpenBlock, text: str) -> CallPiece:
    block = opened.block
    return CallPiece(
        opened.position, str(block.get("id") or ""), str(block.get("name") or ""), text, {}
    )


def _refusal(delta: Mapping[str, Any]) -> str:
    details = _mapping(delta.get("stop_details"))
    category = str(details.get("category") or "").replace("_", " ")
    about = f" ({category})" if category else ""
    return str(details.get("explanation") or f"the model refused to answer{about}.")


def _with_status(error: Any) -> Any:
    """Return an error object with the status that its type has outside of streams."""
    if not isinstance(error, Mapping):
        return error
    status = _STATUS.get(str(error.get("type")))
    return {**error, "code": status} if status else error


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _index(value: Mapping[str, Any]) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else 0
