"""Marks in a prompt, up to which the server keeps it for the next request.

A request has at most four. The situation before the newest request of a chat is gone in the next
round, so the prompt has marks before it: all that stands there is sent again as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Blocks = list[dict[str, Any]]

_UNMARKED = frozenset({"thinking", "redacted_thinking"})
_QUESTIONS = 2


def mark(
    tools: Blocks,
    system: Blocks,
    messages: Sequence[Mapping[str, Any]],
    control: Mapping[str, Any],
) -> None:
    """Mark the ends of the system prompt, of the chat before its last two questions, and of all.

    Args:
        tools: The tools, which come first in what the server reads.
        system: The system prompt.
        messages: The chat.
        control: The mark.
    """
    _mark_last(system or tools, control)
    questions = [
        number
        for number, message in enumerate(messages)
        if message["role"] == "user"
        and any(block["type"] != "tool_result" for block in message["content"])
    ]
    ends = [number - 1 for number in questions if number]
    for number in {*ends[-_QUESTIONS:], len(messages) - 1}:
        _mark_last(messages[number]["content"], control)


def _mark_last(blocks: Blocks, control: Mapping[str, Any]) -> None:
    """Mark the last block that takes a mark; blocks are shared, so it is replaced."""
    for number in reversed(range(len(blocks))):
        if blocks[number].get("type") not in _UNMARKED:
            blocks[number] = {**blocks[number], "cache_control": dict(control)}
            return
