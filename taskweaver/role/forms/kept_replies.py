"""The record of a model's reply on its first post: the calls in their order, and the provider's.

It goes back to the role's own model alone, and is added without an event: listeners show none of
it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from taskweaver.llm.parsing.call_pieces import is_object
from taskweaver.llm.types import ToolCall
from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.post import Post

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_REFUSED_TOO = "Not run: the reply could not be used, see the last result."


@dataclass(frozen=True, slots=True)
class KeptCall:
    """A call of a reply.

    Attributes:
        name: Name of the tool.
        arguments: The arguments, a JSON object as text.
        post: Id of the post that carries it out; empty where its result is known.
        result: Its result.
    """

    name: str
    arguments: str
    post: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True)
class KeptReply:
    """A reply, as it goes back to its model.

    Attributes:
        calls: Its calls, in order.
        record: The reply as its provider sent it; empty where nothing has to go back.
    """

    calls: tuple[KeptCall, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict)


def keep(post: Post, reply: KeptReply) -> None:
    """Put a reply on its first post; one without calls and record leaves nothing."""
    if not reply.calls and not reply.record:
        return
    calls = [
        {"name": call.name, "arguments": call.arguments}
        | ({"post": call.post} if call.post else {"result": call.result})
        for call in reply.calls
    ]
    extra: dict[str, Any] = {"calls": calls}
    if reply.record:
        extra["record"] = dict(reply.record)
    post.add_attachment(Attachment.create(AttachmentType.reply_record, "", extra=extra))


def kept_reply(post: Post) -> KeptReply | None:
    """Return the reply on a post; None without one, or where it has another form."""
    items = post.get_attachment(AttachmentType.reply_record)
    extra = items[-1].extra if items else None
    calls = extra.get("calls") if isinstance(extra, Mapping) else None
    if not isinstance(extra, Mapping) or not isinstance(calls, list):
        return None
    if not all(isinstance(call, Mapping) and call.get("name") for call in calls):
        return None
    record = extra.get("record")
    return KeptReply(tuple(map(_call, calls)), record if _is_record(record) else {})


def refused_reply(
    calls: Sequence[ToolCall], record: Mapping[str, Any], problem: str
) -> KeptReply | None:
    """Return a reply that cannot be used, with the problem as its result.

    None if a call is malformed: it may never go back as a call.
    """
    is_whole = all(_NAME.fullmatch(call.name) and is_object(call.arguments) for call in calls)
    if not calls or not is_whole:
        return None
    results = [_REFUSED_TOO] * (len(calls) - 1) + [problem]
    kept = [
        KeptCall(call.name, call.arguments, result=result)
        for call, result in zip(calls, results, strict=True)
    ]
    return KeptReply(tuple(kept), record)


def _call(facts: Mapping[str, object]) -> KeptCall:
    name, arguments, post, result = (
        str(facts.get(key, "")) for key in ("name", "arguments", "post", "result")
    )
    return KeptCall(name, arguments or "{}", post, result)


def _is_record(record: object) -> TypeGuard[Mapping[str, Any]]:
    return (
        isinstance(record, Mapping)
        and isinstance(record.get("origin"), str)
        and all(isinstance(record.get(name), list) for name in ("ids", "items"))
    )
