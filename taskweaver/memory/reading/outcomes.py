"""Outcomes of cells in past rounds, shortened for prompts; the store keeps their full text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.reading.cells import has_run
from taskweaver.memory.round import Round

_MOST_CHARS, _FEWEST_CHARS = 2_000, 400
_WINDOW_SHARE = 0.08
"""Characters of an outcome for each token of the window."""

_HEAD_SHARE = 0.6
_NOTE_CHARS = 100
_NUMBER = re.compile(
    r"(?<![\w.,:/-])-?\d{1,15}(?:\.\d{1,17})?(?:[eE][+-]?\d{1,3})?(?!\w|[.,:/-]\w)"
)
"""A number that stands alone: no part of a date, a path or a version."""


def outcome_chars(window: int) -> int:
    """Return the most characters of a past outcome in a window of tokens; 0 is an unknown one."""
    share = int(window * _WINDOW_SHARE) if window else _MOST_CHARS
    return max(min(share, _MOST_CHARS), _FEWEST_CHARS)


def short_outcome(text: str, limit_chars: int) -> str:
    """Return the beginning and the end of an outcome, and the extent of the part between them."""
    if len(text) <= limit_chars + _NOTE_CHARS:
        return text
    head = int(limit_chars * _HEAD_SHARE)
    tail = len(text) - (limit_chars - head)
    left_out = text[head:tail]
    numbers = sorted(_NUMBER.findall(left_out), key=float)
    span = f" with numbers from {numbers[0]} to {numbers[-1]}" if numbers else ""
    note = f"\n... {len(left_out):,} characters{span} left out ...\n"
    return f"{text[:head]}{note}{text[tail:]}"


def with_short_outcomes(round_: Round, limit_chars: int) -> Round:
    """Return a past round with shortened outcomes of its cells; itself where all are short."""
    posts = [_shortened(post, limit_chars) for post in round_.post_list]
    if all(new is old for new, old in zip(posts, round_.post_list, strict=True)):
        return round_
    return replace(round_, post_list=posts)


class PastOutcomes:
    """The past rounds of prompts with shortened outcomes, each made once."""

    def __init__(self) -> None:
        self._limit_chars = 0
        self._made: dict[str, tuple[Round, Round]] = {}

    def shortened(self, rounds: Sequence[Round], window: int) -> list[Round]:
        """Return rounds of which all but the last have short outcomes.

        Args:
            rounds: The rounds of a prompt; the last one is being answered.
            window: Tokens of the reader's window; 0 for unknown.
        """
        limit_chars = outcome_chars(window)
        known = self._made if limit_chars == self._limit_chars else {}
        self._limit_chars, self._made = limit_chars, {}
        for round_ in rounds[:-1]:
            made = known.get(round_.id)
            if made is None or made[0] is not round_:
                made = (round_, with_short_outcomes(round_, limit_chars))
            self._made[round_.id] = made
        return [*(short for _, short in self._made.values()), *rounds[-1:]]


def _shortened(post: Post, limit_chars: int) -> Post:
    if not has_run(post):
        return post
    message = short_outcome(post.message, limit_chars)
    attachments = [_shortened_result(item, limit_chars) for item in post.attachment_list]
    if message is post.message and _are_same(attachments, post.attachment_list):
        return post
    return replace(post, message=message, attachment_list=attachments)


def _shortened_result(item: Attachment, limit_chars: int) -> Attachment:
    if item.type is not AttachmentType.execution_result or not isinstance(item.content, str):
        return item
    content = short_outcome(item.content, limit_chars)
    return item if content is item.content else replace(item, content=content)


def _are_same(new: Sequence[Attachment], old: Sequence[Attachment]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
