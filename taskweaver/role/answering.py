"""The seam between a role that answers the user and the check of its answer."""

from __future__ import annotations

from typing import Protocol

from taskweaver.memory.post import Post


class AnswerReview(Protocol):
    """Checks an answer before it is sent."""

    def doubts(self, post: Post) -> list[str]:
        """Return the numbers of an answer that its author is asked to correct.

        Empty if all numbers are supported, or if the author was asked already in this round.
        """
        ...


def as_list(numbers: list[str]) -> str:
    """Return numbers as a prompt names them; of many the first."""
    most = 20
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return ", ".join(numbers[:most]) + more
