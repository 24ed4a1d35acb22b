"""The facts kept for later requests, as a role reads, adds and forgets them."""

from __future__ import annotations

from typing import Protocol


class LongMemory(Protocol):
    """Facts of a branch and of its project.

    The operations never raise for a malformed text: their result says why nothing was done.
    """

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
