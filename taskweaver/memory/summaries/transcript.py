"""Text of the rounds for a summariser: the messages, with the code and its results.

Each piece is bounded, its middle left out when it is longer, and so is the whole of a round.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.reading.outcomes import with_short_outcomes
from taskweaver.memory.round import Round
from taskweaver.utils.markup.quoting import quoted_section
from taskweaver.utils.text import estimate_tokens, remove_temporal_parts, shorten

MESSAGE_CHARS = 4_000
ROUND_CHARS = 24_000
_ATTACHMENT_CHARS = {
    AttachmentType.plan: 1_500,
    AttachmentType.reply_content: 3_000,
    AttachmentType.verification: 500,
    AttachmentType.code_error: 1_500,
    AttachmentType.execution_status: 100,
    AttachmentType.execution_result: 2_000,
    AttachmentType.artifact_paths: 1_000,
    AttachmentType.session_variables: 2_000,
    AttachmentType.text: 2_000,
}

_REPEATED = frozenset({AttachmentType.execution_result, AttachmentType.session_variables})
"""Attachments whose text is, shortened, in the message of the post or of the newest request."""


def transcript_of(round_: Round, number: int) -> str:
    """Return a round with its number, counted from 1, as text."""
    lines = [f"### Round {number}", f"The user asked: {_bounded(round_.user_query, MESSAGE_CHARS)}"]
    if round_.state == "failed":
        lines.append("This round failed.")
    cells: set[str] = set()
    for post in round_.post_list:
        lines += _post_lines(post, round_.user_query, cells)
    return shorten("\n".join(lines), ROUND_CHARS)


def tokens_of(round_: Round, outcome_chars: int) -> int:
    """Estimate the tokens of a past round: messages, and what is attached and not in them.

    Args:
        round_: The round.
        outcome_chars: Most characters of an outcome.
    """
    return sum(
        estimate_tokens(post.message)
        + sum(
            estimate_tokens(_text(item.content))
            for item in post.attachment_list
            if item.type not in _REPEATED
        )
        + sum(_record_tokens(item) for item in post.get_attachment(AttachmentType.reply_record))
        for post in with_short_outcomes(round_, outcome_chars).post_list
    )


def _record_tokens(item: Attachment) -> int:
    """Estimate the tokens of what a provider wants back of a reply: it is part of prompts."""
    record = item.extra.get("record") if isinstance(item.extra, dict) else None
    return estimate_tokens(json.dumps(record, ensure_ascii=False)) if record else 0


def _post_lines(post: Post, query: str, cells: set[str]) -> Iterator[str]:
    """Yield the lines of a post; code that is among `cells` already is left out."""
    message = "(the request)" if post.message == query else _bounded(post.message, MESSAGE_CHARS)
    yield f"{post.send_from} -> {post.send_to}: {message}"
    told = _plain(post.message)
    for attachment in post.attachment_list:
        limit_chars = _ATTACHMENT_CHARS.get(attachment.type)
        text = _text(attachment.content).strip()
        if attachment.type is AttachmentType.reply_content and text:
            if text in cells:  # a report repeats the cell that it is about
                continue
            cells.add(text)
        # Messages repeat code and results; headings differ in depth.
        if limit_chars is not None and text and _plain(text) not in told:
            yield f"[{attachment.type.value}] {_bounded(text, limit_chars)}"


def _text(content: object) -> str:
    if isinstance(content, list | tuple):
        return "\n".join(map(str, content))
    return "" if content is None else str(content)


def _plain(text: str) -> str:
    return text.replace("#", "")


def _bounded(text: str, limit_chars: int) -> str:
    return quoted_section(shorten(remove_temporal_parts(text), limit_chars))
