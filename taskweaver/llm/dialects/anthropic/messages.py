"""Chats as Anthropic's endpoint takes them: system prompt apart, blocks, roles in turn."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from taskweaver.llm.parsing.call_pieces import as_json
from taskweaver.llm.types import ChatMessage

_NO_TEXT = "(no text)"
_DATA_URL = re.compile(r"data:(?P<kind>[\w.+/-]+)(?:;[\w=.-]+)*;base64,(?P<data>.*)", re.DOTALL)

Block = dict[str, Any]


def wire_messages(messages: Sequence[ChatMessage]) -> tuple[list[Block], list[dict[str, Any]]]:
    """Return the system prompt, and the messages after it.

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
    """Return the blocks of a message; at least one, since the endpoint takes no empty message."""
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
    function = call.get("function") or {}
    return {
        "type": "tool_use",
        "id": str(call.get("id", "")),
        "name": function.get("name", ""),
        "input": call_input(str(function.get("arguments") or "")) or {},
    }


def call_input(arguments: str) -> dict[str, Any] | None:
    """Return the arguments of a call as an object; None if they are broken."""
    try:
        value = json.loads(as_json(arguments))
    except (ValueError, RecursionError):
        return None
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
