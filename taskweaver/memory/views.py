"""Views of a conversation: the posts of each role, and past rounds with short outcomes.

A role sees the posts it wrote or received. Text meant for the moment (between the temporal
delimiters) is seen in the last round only; the delimiters themselves are never seen. The parts
picked from a round are kept, with a cursor into its posts, so a view reads each post once. Rounds
only ever grow, and posts stay as they are once added, so nothing is copied but posts whose text
changes. Prompts and summaries show outcomes of past cells shortened; the store keeps the full text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.cells import has_orders, has_run
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.shared_memory_entry import SharedMemoryEntry
from taskweaver.utils.text import (
    has_temporal,
    remove_temporal_delimiters,
    remove_temporal_parts,
)

EVERY_ROLE = "*"
"""Stands for the view of all posts, where an alias of a role is meant."""

T = TypeVar("T")


@dataclass(slots=True)
class _Picked(Generic[T]):
    """The parts picked from the first `scanned` posts of a round."""

    source: Round
    posts: list[Post]
    scanned: int
    items: list[T]


class _Projection(Generic[T]):
    """Picks items from posts, round by round, each post once."""

    def __init__(self, pick: Callable[[Post], Iterable[T]]) -> None:
        self._pick = pick
        self._picked: list[_Picked[T]] = []

    def refresh(self, rounds: Sequence[Round]) -> list[_Picked[T]]:
        """Return the parts picked from each of `rounds`, which callers never change."""
        picked = self._picked
        del picked[len(rounds) :]
        for index, round_ in enumerate(rounds):
            posts = round_.post_list
            if index == len(picked):
                picked.append(_Picked(round_, posts, 0, []))
            known = picked[index]
            is_same = known.source is round_ and known.posts is posts
            if is_same and known.scanned == len(posts):
                continue
            if not is_same or known.scanned > len(posts):
                known = picked[index] = _Picked(round_, posts, 0, [])
            new = posts[known.scanned :]
            known.items.extend(item for post in new for item in self._pick(post))
            known.scanned += len(new)
        return picked


class RoleView:
    """The rounds as one role sees them. Not thread-safe: its owner holds a lock."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._now = _Projection(partial(self._own, remove_temporal_delimiters))
        self._later = _Projection(partial(self._own, remove_temporal_parts))
        self._past: dict[str, Round] = {}

    def rounds(
        self,
        conversation: Sequence[Round],
        *,
        include_failure_rounds: bool = False,
        is_lasting: bool = False,
    ) -> list[Round]:
        """Return the rounds with the role's posts only, in a fresh list. The rounds are shared.

        Args:
            conversation: All rounds. One in which the role has no part is kept, without posts.
            include_failure_rounds: Whether failed rounds are part of the view.
            is_lasting: Whether text meant for the moment is left out of the last round too, and
                failed rounds with orders are part of the view.
        """
        now = self._now.refresh(conversation)
        later = self._later.refresh(conversation[:-1])
        seen = [
            index
            for index, round_ in enumerate(conversation)
            if include_failure_rounds
            or round_.state != "failed"
            or (is_lasting and has_orders(round_))
        ]
        if not seen:
            return []
        past = [self._past_round(conversation[index], later[index]) for index in seen[:-1]]
        last = conversation[seen[-1]]
        items = now[seen[-1]].items
        if is_lasting:
            items = [
                post for one in last.post_list for post in self._own(remove_temporal_parts, one)
            ]
        return [*past, _viewed(last, items)]

    def _past_round(self, round_: Round, picked: _Picked[Post]) -> Round:
        """Return the view of a round that is not the last, made again only when it changed."""
        known = self._past.get(round_.id)
        state = round_.state, len(picked.items)
        if known is None or (known.state, len(known.post_list)) != state:
            known = self._past[round_.id] = _viewed(round_, picked.items)
        return known

    def _own(self, change: Callable[[str], str], post: Post) -> Iterable[Post]:
        """Yield a post with the texts changed, if the role sees the post."""
        if self._role in (EVERY_ROLE, post.send_from, post.send_to):
            yield _changed(post, change)


def _viewed(round_: Round, posts: Sequence[Post]) -> Round:
    return Round(round_.id, round_.user_query, round_.state, list(posts))


class SharedEntries:
    """The entries roles share, by sender. Not thread-safe: its owner holds a lock."""

    def __init__(self) -> None:
        self._entries = _Projection(_entries_of)

    def effective(self, conversation: Sequence[Round], entry_type: str) -> list[SharedMemoryEntry]:
        """Return the latest entry of each sender that holds now, in the order of writing.

        An entry of scope ``conversation`` holds from then on, one of scope ``round`` only while
        its round is the last. Entries of failed rounds do not count.
        """
        latest: dict[str, SharedMemoryEntry] = {}
        for round_, picked in zip(conversation, self._entries.refresh(conversation), strict=True):
            if not picked.items or round_.state == "failed":
                continue
            is_last = round_ is conversation[-1]
            for sender, entry in picked.items:
                if entry.type == entry_type and (is_last or entry.scope == "conversation"):
                    latest.pop(sender, None)
                    latest[sender] = entry
        return list(latest.values())


def _entries_of(post: Post) -> Iterable[tuple[str, SharedMemoryEntry]]:
    for attachment in post.get_attachment(AttachmentType.shared_memory_entry):
        if isinstance(attachment.extra, SharedMemoryEntry):
            yield post.send_from, attachment.extra


def _changed(post: Post, change: Callable[[str], str]) -> Post:
    """Return `post` with the texts changed: itself without a temporal delimiter."""
    attachments = [_changed_attachment(item, change) for item in post.attachment_list]
    message = change(post.message) if has_temporal(post.message) else post.message
    return _with_texts(post, message, attachments)


def _with_texts(post: Post, message: str, attachments: list[Attachment]) -> Post:
    """Return a post with other texts: itself where all are the same objects."""
    is_same = all(a is b for a, b in zip(attachments, post.attachment_list, strict=True))
    if is_same and message is post.message:
        return post
    return replace(post, message=message, attachment_list=attachments)


def _changed_attachment(attachment: Attachment, change: Callable[[str], str]) -> Attachment:
    content: Any = attachment.content
    if not isinstance(content, str) or not has_temporal(content):
        return attachment
    return replace(attachment, content=change(content))


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
    """Return the most characters of a past outcome in a window of tokens. 0 is an unknown one."""
    share = int(window * _WINDOW_SHARE) if window else _MOST_CHARS
    return max(min(share, _MOST_CHARS), _FEWEST_CHARS)


def short_outcome(text: str, limit_chars: int) -> str:
    """Return the beginning and the end of an outcome, and the extent of the part between."""
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
    """Return a past round with shortened outcomes of the cells. Itself where all are short."""
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
    attachments = [_shortened_result(item, limit_chars) for item in post.attachment_list]
    return _with_texts(post, short_outcome(post.message, limit_chars), attachments)


def _shortened_result(item: Attachment, limit_chars: int) -> Attachment:
    if item.type is not AttachmentType.execution_result or not isinstance(item.content, str):
        return item
    content = short_outcome(item.content, limit_chars)
    return item if content is item.content else replace(item, content=content)
