"""Events of replies as Anthropic's endpoint streams them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

COUNTS = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 200,
    "cache_read_input_tokens": 3000,
    "output_tokens": 1,
}
SIGNATURE = "ErUBCkYIBRgCIkDx+sk-ant-api03-AAAAAAAAAAAAAAAA/9=="
Block = dict[str, Any]


def event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode()


def begin(counts: dict[str, int] = COUNTS) -> bytes:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    return event("message_start", message={**message, "model": "claude-x-1", "usage": counts})


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def thinking(words: str, signature: str = SIGNATURE) -> Block:
    return {"type": "thinking", "thinking": words, "signature": signature}


def call(id_: str = "toolu_1", name: str = "run_python", **arguments: Any) -> Block:
    """Return a call."""
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def streamed(index: int, block: Block) -> list[bytes]:
    empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}
    kind = block["type"]
    deltas: list[Block] = []
    start = {**block, **empty.get(kind, {})}
    if kind == "text":
        deltas = [{"type": "text_delta", "text": part} for part in _cut(block["text"])]
    elif kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": part} for part in _cut(block["thinking"])]
        deltas += [{"type": "signature_delta", "signature": block["signature"]}]
    elif kind == "tool_use":
        start["input"] = {}
        written = json.dumps(block["input"], ensure_ascii=False)
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in _cut(written)]
    return [
        event("content_block_start", index=index, content_block=start),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def ending(reason: str = "end_turn", tokens: int = 25, **delta: Any) -> list[bytes]:
    counts = {"output_tokens": tokens, "output_tokens_details": {"thinking_tokens": 7}}
    ended = {"stop_reason": reason, "stop_sequence": None, **delta}
    return [event("message_delta", delta=ended, usage=counts), event("message_stop")]


def reply(*blocks: Block, reason: str = "", counts: dict[str, int] = COUNTS) -> list[bytes]:
    """Return the body of a reply without fault."""
    has_call = any(block["type"] == "tool_use" for block in blocks)
    found = [begin(counts), event("ping")]
    for index, block in enumerate(blocks):
        found += streamed(index, block)
    return [*found, *ending(reason or ("tool_use" if has_call else "end_turn"))]


def failed(kind: str, words: str) -> bytes:
    return event("error", error={"type": kind, "message": words})


def unmarked(value: Any) -> Any:
    """Return a part of a body without the marks for the cache."""
    if isinstance(value, list):
        return [unmarked(part) for part in value]
    if isinstance(value, dict):
        return {key: unmarked(part) for key, part in value.items() if key != "cache_control"}
    return value


class CacheOfServer:
    """The cache as Anthropic documents it: prefixes by their marks, found 20 blocks back."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def read(self, body: dict[str, Any]) -> tuple[int, int, int]:
        """Return the number of blocks read from the cache, of all blocks, and of marks."""
        blocks = [*body["tools"], *body["system"]]
        blocks += [block for message in body["messages"] for block in message["content"]]
        marks = [at for at, block in enumerate(blocks, 1) if "cache_control" in block]
        texts = [json.dumps(unmarked(block)) for block in blocks]
        prefixes = list(accumulate(texts, initial=""))
        seen = [at for mark in marks for at in range(mark, max(mark - 20, 0), -1)]
        found = max((at for at in seen if prefixes[at] in self._known), default=0)
        self._known |= {prefixes[at] for at in marks}
        return found, len(blocks), len(marks)


def _cut(words: str) -> Sequence[str]:
    return [words[at : at + 7] for at in range(0, len(words), 7)]
