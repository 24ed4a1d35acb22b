"""Replies as sent by providers: reasoning, signatures and ids, which go back to the origin only.

A record is plain data: ``origin`` names dialect, address and model; ``ids`` are the provider's ids
of the calls, in order; ``items`` are the parts of the reply in the provider's own format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taskweaver.llm.types import ChatMessage


def restored(messages: Sequence[ChatMessage], origin: str) -> list[ChatMessage]:
    """Return messages with the records of an origin and its ids, and without all other records.

    Messages that stay as they are, nearly all of a long chat, are shared and not copied.

    Args:
        messages: The chat; a reply with a record has its calls in the record's order.
        origin: Dialect, address and model that is asked; empty to leave all records out.
    """
    if not any("record" in message for message in messages):  # only some dialects keep them
        return list(messages)
    own_ids: dict[str, str] = {}
    found: list[ChatMessage] = []
    for message in messages:
        record = message.get("record")
        call_id = own_ids.get(message.get("tool_call_id", ""))
        if "record" in message or call_id:
            message = message.copy()
            message.pop("record", None)
        if record and record.get("origin") == origin:
            own_ids |= _restore(message, record)
        if call_id:
            message["tool_call_id"] = call_id
        found.append(message)
    return found


def _restore(message: ChatMessage, record: Mapping[str, Any]) -> dict[str, str]:
    """Put a record and the record's ids into a message, and return the ids by the replaced ids."""
    calls, ids = message.get("tool_calls", []), record["ids"]
    if len(calls) != len(ids):
        return {}  # calls were dropped: the record describes another message
    message["record"] = record
    replaced = {str(call["id"]): str(id_) for call, id_ in zip(calls, ids, strict=True)}
    if calls:
        message["tool_calls"] = [{**call, "id": replaced[str(call["id"])]} for call in calls]
    return replaced
