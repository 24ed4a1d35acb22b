"""Log of a conversation, written while it happens."""

from __future__ import annotations

from typing import Protocol

from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.memory.summaries.compacted import NoSummaries, SummaryStore


class ConversationLog(Protocol):
    """Keeps the changes of a `Memory`. Each call returns when its change is safe."""

    def round_started(self, round_: Round) -> None:
        """Keep a new round."""

    def post_added(self, round_: Round, post: Post) -> None:
        """Keep a complete post."""

    def round_ended(self, round_: Round) -> None:
        """Keep how a round ended."""

    def summaries(self, role: str) -> SummaryStore:
        """Return the store of the summaries of a role's rounds."""


class NoLog:
    """Keeps nothing: the conversation lives in memory alone."""

    def round_started(self, round_: Round) -> None:
        """Do nothing."""

    def post_added(self, round_: Round, post: Post) -> None:
        """Do nothing."""

    def round_ended(self, round_: Round) -> None:
        """Do nothing."""

    def summaries(self, role: str) -> SummaryStore:  # noqa: ARG002 - as `ConversationLog`
        """Return a store that stores nothing."""
        return NoSummaries()
