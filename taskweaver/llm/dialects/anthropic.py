"""Anthropic messages, the protocol of Claude's own endpoint and of compatible endpoints.

Messages have the system prompt apart, blocks, and roles in turn. ``effort`` and ``format`` stand
beside the other parameters until the body is built, where they share ``output_config``;
``cache_control`` and ``eager_input_streaming`` go to the blocks and tools that they are for. So
each of them is left out alone where a model rejects it.

A reply with blocks that the server wants back (reasoning with signatures, results of its own tools)
is kept whole, block by block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, ClassVar

from taskweaver.llm.dialects.dialect import Dialect, ResponseFormat, Sampling, given, narrowed
from taskweaver.llm.parsing.call_pieces import CallPiece, as_json
from taskweaver.llm.parsing.stream import (
    EventReader,
    ReplyEvents,
    StreamEvent,
    UnreadableEvent,
    mapping_in,
    text_in,
)
from taskweaver.llm.types import (
    ChatMessage,
    Effort,
    FinishReason,
    ModelRequest,
    Usage,
    function_of,
)
from taskweaver.utils.parsing import json_value

Block = dict[str, Any]

_VERSION = "2023-06-01"
_MAX_TOKENS = 32_000
"""Longest reply where none is configured: the protocol has no default, and all models that are not
retired write as much."""

MAX_KEPT_CHARS = 8 << 20
"""Longest signatures and results of the server's own tools in a reply, all together."""

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
_BUDGETED = re.compile(r"claude-(?:3-7|(?:haiku|sonnet|opus)-4(?![-.][6-9]))")
_BUDGETS = {"low": 2048, "medium": 8192, "high": 16_384}
_LARGEST_BUDGET = 24_576
_LEAST_BUDGET = 1024
_THINKING = frozenset({"thinking", "redacted_thinking"})
_NO_TEXT = "(no text)"
_DATA_URL = re.compile(r"data:(?P<kind>[\w.+/-]+)(?:;[\w=.-]+)*;base64,(?P<data>.*)", re.DOTALL)


class AnthropicDialect(Dialect):
    """Anthropic messages."""

    name: ClassVar[str] = "anthropic"
    path: ClassVar[str] = "/messages"
    format_parameter: ClassVar[str] = "format"

    def headers(self, key: str, /) -> Mapping[str, str]:
        """Return the key and the protocol's version. No other header has the key."""
        return {"x-api-key": key, "anthropic-version": _VERSION, "Authorization": ""}

    def parameters(
        self, request: ModelRequest, sampling: Sampling, response_format: ResponseFormat
    ) -> dict[str, Any]:
        """Return all of a body but the messages, some under private names."""
        stop = [text for text in sampling.stop or () if text.strip()]
        parameters: dict[str, Any] = {
            "max_tokens": sampling.max_tokens or _MAX_TOKENS,
            "temperature": None if sampling.temperature is None else min(sampling.temperature, 1.0),
            "top_p": sampling.top_p,
            "stop_sequences": stop or None,
            "cache_control": {"type": "ephemeral"},
            **_effort_parameters(sampling.reasoning_effort),
        }
        if request.schema is not None and response_format == "json_schema":
            parameters["format"] = {"type": "json_schema", "schema": narrowed(request.schema)}
        parameters |= request.extra
        if request.tools:
            parameters.pop("format", None)
            parameters["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": {"type": "object", **tool.parameters},
                }
                for tool in request.tools
            ]
            parameters["eager_input_streaming"] = True
            if request.tool_choice == "none":
                parameters["tool_choice"] = {"type": "none"}
        return given(parameters)

    def body(
        self, model: str, messages: Sequence[ChatMessage], parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the body of a request."""
        system, chat = _wire_messages(messages)
        body = _as_budget(model, {"max_tokens": _MAX_TOKENS, **parameters}, chat)
        control, is_eager = body.pop("cache_control", None), body.pop("eager_input_streaming", None)
        output = {"effort": body.pop("effort", None), "format": body.pop("format", None)}
        output = {**body.pop("output_config", {}), **given(output)}
        if output:
            body["output_config"] = output
        if is_eager is not None:
            body["tools"] = [{**tool, "eager_input_streaming": True} for tool in body["tools"]]
        if control is not None:
            _mark(body.get("tools", []), system, chat, control)
        if system:
            body["system"] = system
        return {**body, "model": model, "messages": chat, "stream": True}

    def events(self) -> MessageEvents:
        """Return a reader for the body of one reply."""
        return MessageEvents()


def _mark(
    tools: list[Block],
    system: list[Block],
    messages: Sequence[Mapping[str, Any]],
    control: Mapping[str, Any],
) -> None:
    """Mark the ends of the system prompt, of the chat before its last two questions, and of all.

    The server keeps a prompt up to its marks, four at most, for the next request. The situation
    before the newest request of a chat is gone in the next round, hence marks before it: all that
    stands there is sent again as it is.
    """
    _mark_last(system or tools, control)
    questions = [
        number
        for number, message in enumerate(messages)
        if message["role"] == "user"
        and any(block["type"] != "tool_result" for block in message["content"])
    ]
    ends = [number - 1 for number in questions if number]
    for number in {*ends[-2:], len(messages) - 1}:
        _mark_last(messages[number]["content"], control)


def _mark_last(blocks: list[Block], control: Mapping[str, Any]) -> None:
    """Mark the last block that takes a mark.

    Blocks are shared, so a marked copy replaces the block.
    """
    for number in reversed(range(len(blocks))):
        if blocks[number].get("type") not in _THINKING:
            blocks[number] = {**blocks[number], "cache_control": dict(control)}
            return


def _effort_parameters(effort: Effort | None) -> dict[str, Any]:
    """Return the parameters for an effort. None leaves the effort to the endpoint."""
    if effort is None:
        return {}
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "adaptive"}, "effort": "low" if effort == "minimal" else effort}


def _as_budget(
    model: str, parameters: Mapping[str, Any], chat: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return parameters with a number of tokens in place of an effort, for models that need one.

    Such a model takes no thinking where the reply to go on with lacks its own.
    """
    is_adaptive = parameters.get("thinking") == {"type": "adaptive"}
    if not (is_adaptive and _BUDGETED.search(model)):
        return dict(parameters)
    found = {key: value for key, value in parameters.items() if key not in {"thinking", "effort"}}
    wanted = _BUDGETS.get(str(parameters.get("effort")), _LARGEST_BUDGET)
    budget = min(wanted, int(parameters["max_tokens"]) - _LEAST_BUDGET)
    if budget >= _LEAST_BUDGET and not _lacks_thinking(chat):
        found["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return found


def _lacks_thinking(chat: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether results go back to a reply of which the reasoning is not there."""
    if len(chat) < 2 or chat[-1]["content"][0]["type"] != "tool_result":
        return False
    return chat[-2]["content"][0]["type"] not in _THINKING


def _wire_messages(messages: Sequence[ChatMessage]) -> tuple[list[Block], list[dict[str, Any]]]:
    """Return the system prompt, and the messages after the system prompt.

    The results of one reply stand in one message, before any text. A later system message is a
    user's text: moved to the front, it would change all that the server has cached.
    """
    head = list(takewhile(lambda message: message["role"] == "system", messages))
    system = [block for message in head for block in _parts(message["content"])]
    found: list[dict[str, Any]] = []
    for message in messages[len(head) :]:
        role = "assistant" if message["role"] == "assistant" else "user"
        if found and found[-1]["role"] == role:
            found[-1]["content"] += _blocks(message)
        elif role == "assistant" and not found:
            found += [_said("user", [_text(_NO_TEXT)]), _said(role, _blocks(message))]
        else:
            found.append(_said(role, _blocks(message)))
    for turn in found:
        if turn["role"] == "user":
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    return system, found


def _said(role: str, blocks: list[Block]) -> dict[str, Any]:
    return {"role": role, "content": blocks}


def _blocks(message: ChatMessage) -> list[Block]:
    """Return the blocks of a message: at least one, since the endpoint takes no empty message."""
    returned = _returned(message)
    if returned:
        return returned
    if message["role"] == "tool" and message.get("tool_call_id"):
        return [_result(message)]
    blocks = _parts(message["content"]) + [_call(call) for call in message.get("tool_calls", ())]
    return blocks or [_text(_NO_TEXT)]


def _returned(message: ChatMessage) -> list[Block]:
    """Return the blocks of a reply as they came; none where they are not of its calls.

    The file that a record was read from may have been changed.
    """
    items = message.get("record", {}).get("items", ())
    blocks = [dict(item) for item in items if isinstance(item, Mapping)]
    ids = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
    is_whole = len(blocks) == len(items) and all(
        isinstance(block.get("type"), str) for block in blocks
    )
    own = [call.get("id") for call in message.get("tool_calls", ())]
    return blocks if is_whole and ids == own else []


def _result(message: ChatMessage) -> Block:
    content = message["content"] or _NO_TEXT
    block: Block = {
        "type": "tool_result",
        "tool_use_id": message["tool_call_id"],
        "content": content if isinstance(content, str) else _parts(content),
    }
    if message.get("is_error"):
        block["is_error"] = True
    return block


def _call(call: Mapping[str, Any]) -> Block:
    name, arguments = function_of(call)
    given = _call_input(arguments) or {}
    return {"type": "tool_use", "id": str(call.get("id", "")), "name": name, "input": given}


def _call_input(arguments: str) -> dict[str, Any] | None:
    """Return the arguments of a call as an object, or None if broken."""
    value = json_value(as_json(arguments))
    return value if isinstance(value, dict) else None


def _parts(content: str | Sequence[Mapping[str, Any]] | None) -> list[Block]:
    """Return content as blocks, without blank texts."""
    if content is None or isinstance(content, str):
        return [_text(content)] if content and content.strip() else []
    blocks = [_part(part) for part in content]
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


def _part(part: Mapping[str, Any]) -> Block:
    if part.get("type") != "image_url":
        return _text(str(part.get("text", "")))
    address = part["image_url"]
    url = str(address["url"] if isinstance(address, Mapping) else address)
    data = _DATA_URL.fullmatch(url)
    if data is None:
        return {"type": "image", "source": {"type": "url", "url": url}}
    source = {"type": "base64", "media_type": data["kind"], "data": data["data"]}
    return {"type": "image", "source": source}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


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
        """Return the block as sent back to the endpoint, or None if broken."""
        block = dict(self.block)
        for name, texts in self.texts.items():
            if name != "input":
                block[name] = str(block.get(name) or "") + "".join(texts)
            else:
                block[name] = _call_input("".join(texts))
        return None if block.get("input", {}) is None else block


class MessageEvents(ReplyEvents):
    """Reader of one reply, which may come in several bodies."""

    def __init__(self) -> None:
        super().__init__(EventReader())
        self._open: dict[int, _OpenBlock] = {}
        self._blocks: list[dict[str, Any]] = []
        self._counts: dict[str, int] = {}
        self._calls = 0
        self._kept_chars = 0
        self._is_broken = False

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """All blocks, if one of the blocks has to go back as received."""
        is_plain = all(block["type"] in _PLAIN for block in self._blocks)
        return () if is_plain or self._is_broken else tuple(self._blocks)

    def _events(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
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
                event = self._start(mapping_in(value.get("message")))
            case "content_block_start":
                event = self._begin(_index(value), mapping_in(value.get("content_block")))
            case "content_block_delta":
                event = self._grow(_index(value), mapping_in(value.get("delta")))
            case "content_block_stop":
                event = self._end_block(_index(value))
            case "message_delta":
                event = self._end(mapping_in(value.get("delta")), mapping_in(value.get("usage")))
            case "message_stop":
                event = StreamEvent(is_done=True)
            case _ if value.get("error"):
                event = StreamEvent(error=_with_status(value["error"]))
        return event

    def _start(self, message: Mapping[str, Any]) -> StreamEvent:
        self._open.clear()
        self._counts.clear()
        self._count(mapping_in(message.get("usage")))
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
        """Take counts. Counts at the end include the counts of the beginning."""
        details = mapping_in(counts.get("output_tokens_details"))
        for name, count in {**counts, **details}.items():
            if isinstance(count, int) and count > 0:
                self._counts[name] = count

    def _usage(self) -> Usage | None:
        """Return the consumption.

        The input's count leaves out tokens from the cache and into the cache.
        """
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
    details = mapping_in(delta.get("stop_details"))
    category = str(details.get("category") or "").replace("_", " ")
    about = f" ({category})" if category else ""
    return str(details.get("explanation") or f"the model refused to answer{about}.")


def _with_status(error: Any) -> Any:
    """Return an error object with the HTTP status of the error's type."""
    if not isinstance(error, Mapping):
        return error
    status = _STATUS.get(str(error.get("type")))
    return {**error, "code": status} if status else error


def _index(value: Mapping[str, Any]) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else 0
