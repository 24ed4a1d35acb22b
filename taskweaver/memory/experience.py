"""Experiences: conversations kept so that later ones may learn from them.

A raw experience is a whole conversation in a file named after its session.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.errors import ConversationError
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round


def save_raw_experience(
    conversation: Conversation, session_id: str, exp_dir: str | Path, *, thin_mode: bool = True
) -> Path:
    """Write a conversation as ``raw_exp_<session_id>.yaml``, all of it or nothing.

    Args:
        conversation: What to keep; read it back with `Conversation.from_yaml`.
        session_id: Names the experience.
        exp_dir: Folder of experiences; made when missing.
        thin_mode: Whether all attachments but plans are left out.

    Returns:
        The file.

    Raises:
        ConversationError: If it cannot be written, or the id is not a file's name.
    """
    name = f"raw_exp_{session_id}.yaml"
    if Path(name).name != name or "\0" in name:
        raise ConversationError(name, "the session id cannot be part of a file's name.")
    if thin_mode:
        conversation = replace(conversation, rounds=[_thin(r) for r in conversation.rounds])
    path = Path(exp_dir) / name
    conversation.to_yaml(path)
    return path


def _thin(round_: Round) -> Round:
    return replace(round_, post_list=[_only_plans(post) for post in round_.post_list])


def _only_plans(post: Post) -> Post:
    return replace(post, attachment_list=post.get_attachment(AttachmentType.plan))
