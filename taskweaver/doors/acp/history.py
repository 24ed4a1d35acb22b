"""Stored rounds as updates: the conversation that a client gets when it loads a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from acp.helpers import ContentBlock, SessionUpdate, text_block, update_agent_message_text
from acp.schema import UserMessageChunk

from taskweaver.doors.acp.cells import shown
from taskweaver.doors.acp.updates import USER, RoundUpdates
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.module.event_emitter import EventScope, PostEventType, TaskWeaverEvent


def round_history(
    round_: Round, branch: str, files: Callable[[str, Sequence[str]], list[ContentBlock]]
) -> Iterator[SessionUpdate]:
    """Yield the updates of a round; `files` is as for `RoundUpdates`."""
    yield UserMessageChunk(
        session_update="user_message_chunk",
        content=text_block(shown(round_.question)),
        message_id=round_.id,
    )
    view = RoundUpdates(files)
    for post in round_.post_list:
        if post.send_from != USER:
            for event in _events(post, branch):
                yield from view.take(event)
    if round_.state != "finished":
        yield update_agent_message_text("This request was not answered.")


def _events(post: Post, branch: str) -> Iterator[TaskWeaverEvent]:
    """Yield the events with which a post could have been written."""

    def event(kind: PostEventType, msg: str = "", **extra: Any) -> TaskWeaverEvent:
        return TaskWeaverEvent(EventScope.post, kind, None, post.id, msg, extra, branch)

    yield event(PostEventType.post_start, role=post.send_from)
    for item in post.attachment_list:
        content = item.content
        text = content if isinstance(content, str) else "\n".join(map(str, content))
        facts = {"type": item.type, "id": item.id, "is_end": True}
        yield event(PostEventType.post_attachment_update, text, **facts)
    yield event(PostEventType.post_message_update, post.message)
    yield event(PostEventType.post_send_to_update, role=post.send_to)
    yield event(PostEventType.post_end)
