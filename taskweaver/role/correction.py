"""Bounded self-correction: a role sends itself corrections, and their posts are the count."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round


def tries_so_far(rounds: Sequence[Round], alias: str) -> int:
    """Count the corrections among the newest posts `alias` sent itself in the last round."""
    posts = rounds[-1].post_list if rounds else []
    to_self = takewhile(lambda post: post.send_from == post.send_to == alias, reversed(posts))
    return sum(bool(post.get_attachment(AttachmentType.revise_message)) for post in to_self)


def follows_empty_reply(rounds: Sequence[Round], alias: str) -> bool:
    """Return whether the newest post is a correction of `alias` to itself, of an empty reply."""
    posts = rounds[-1].post_list if rounds else []
    last = posts[-1] if posts else None
    if last is None or not last.send_from == last.send_to == alias:
        return False
    invalid = last.get_attachment(AttachmentType.invalid_response)
    return bool(invalid) and not any(str(item.content).strip() for item in invalid)


def task_of(rounds: Sequence[Round], alias: str) -> Post | None:
    """Return the newest post another role sent `alias`."""
    posts = rounds[-1].post_list if rounds else []
    return next((p for p in reversed(posts) if p.send_to == alias != p.send_from), None)
