"""Rounds that record cells which ran outside of the conversation, in another Jupyter client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.utils.text import fenced

_HEADING = "Cells that ran outside of this conversation"
CELL = f"# {_HEADING}"
"""The cell that runs in such a round: it does nothing, and its report has the variables."""


def outside_query(codes: Sequence[str]) -> str:
    """Return the text of a round that records cells."""
    cells = fenced("\n\n".join(codes), "python")
    return f"{_HEADING}:\n{cells}"


def with_outside_cells(rounds: Sequence[Round]) -> list[Round]:
    """Return copies of rounds in which the recorded cells are code, so that exports run them."""
    return [_with_code(one) if _is_record(one) else one for one in rounds]


def _is_record(round_: Round) -> bool:
    return round_.user_query.startswith(f"{_HEADING}:\n```")


def _with_code(round_: Round) -> Round:
    _, _, *lines, _ = round_.user_query.split("\n")
    posts = [_with_cell(post, "\n".join(lines)) for post in round_.post_list]
    return replace(round_, user_query=f"{_HEADING}.", post_list=posts)


def _with_cell(post: Post, code: str) -> Post:
    items = [
        replace(item, content=code)
        if item.type is AttachmentType.reply_content and item.content == CELL
        else item
        for item in post.attachment_list
    ]
    return replace(post, attachment_list=items)
