"""The facts kept for later requests, as a role reads, adds and forgets them."""

from __future__ import annotations

from typing import Protocol


class LongMemory(Protocol):
    """Facts of a branch and of its project.

    The operations never raise for a malformed text: their result says why nothing was done.

    Attributes:
        is_kept: Whether facts can be kept at all.
    """

    is_kept: bool

    def text(self, request: str, /) -> str:
        """Return the section of a prompt with the facts for a request; empty for none."""
        ...

    def remember(self, text: str, /) -> str:
        """Keep a fact that a model names; return the outcome in a sentence."""
        ...

    def forget(self, which: str, /) -> str:
        """Forget a fact, by its id or its words; return the outcome in a sentence."""
        ...

    def recall(self, query: str, /) -> str:
        """Return the facts for a query, one a line."""
        ...


class NoLongMemory:
    """The memory of a role that keeps no facts."""

    is_kept = False

    def text(self, _request: str, /) -> str:
        """Return no section."""
        return ""

    def remember(self, _text: str, /) -> str:
        """Keep nothing."""
        return "Nothing is kept here."

    def forget(self, _which: str, /) -> str:
        """Forget nothing."""
        return "Nothing is kept here."

    def recall(self, _query: str, /) -> str:
        """Find nothing."""
        return "Nothing is kept here."
