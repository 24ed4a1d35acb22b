"""Report of a commit to the logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Change:
    """A change that adds no row, for example a seal.

    Attributes:
        seq: Its sequence number.
        at: When, in seconds since 1970.
        op: Its name in the logs.
        facts: The changed values, as plain data.
    """

    seq: int
    at: float
    op: str
    facts: dict[str, Any]


class CommitListener(Protocol):
    """Receives each commit that gave out sequence numbers. It is quick and never raises."""

    def __call__(self, first: int, last: int, changes: Sequence[Change], /) -> None:
        """Receive the numbers that were given out, and the changes that added no row."""
        ...
