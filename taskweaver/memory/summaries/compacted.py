"""A summary that stands for older rounds, and the interface of its providers.

A summary covers a set of round ids, never a position: a round that fails late or is left out of a
view shifts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from taskweaver.memory.round import Round


@dataclass(frozen=True, slots=True)
class CompactedMessage:
    """The summary of the rounds a role need not read in full any more.

    Attributes:
        start_index: Number of the first covered round, from 1.
        end_index: Number of the last covered round.
        summary: The text.
        last_round_id: Id of the last covered round; empty when only positions are known.
        round_ids: Ids of all covered rounds; empty when only positions are known.
    """

    start_index: int
    end_index: int
    summary: str
    last_round_id: str = ""
    round_ids: frozenset[str] = frozenset()

    def to_system_message(self) -> str:
        """Return the summary with a line that names the rounds it stands for."""
        return f"Summary of Rounds {self.start_index}-{self.end_index}:\n{self.summary}"

    def uncovered(self, rounds: Sequence[Round]) -> list[Round]:
        """Return those of `rounds` that this summary does not stand for."""
        if not self.round_ids:
            return list(rounds[self.end_index :])
        return [round_ for round_ in rounds if round_.id not in self.round_ids]


class SummaryStore(Protocol):
    """Stored summaries of one role's rounds."""

    def load(self, retain_recent: int, warn: Callable[[str], None]) -> CompactedMessage | None:
        """Return the stored summary that covers most rounds; None without a usable one.

        Args:
            retain_recent: How many of the newest rounds are read in full.
            warn: Called with a sentence for each summary that cannot be used.
        """

    def save(self, summary: CompactedMessage) -> None:
        """Store a summary; it is safe when this returns."""


class NoSummaries:
    """A `SummaryStore` that stores nothing."""

    def load(self, *_: object) -> None:
        """Return None."""
        return

    def save(self, *_: object) -> None:
        """Do nothing."""


@runtime_checkable
class CompactionProvider(Protocol):
    """Keeps a summary of the older rounds of one role.

    Attributes:
        rounds_getter: Returns the rounds the role sees now.
    """

    rounds_getter: Callable[[], list[Round]]

    def start(self) -> None:
        """Begin, or begin again after `stop`."""

    def stop(self) -> None:
        """End; the last summary stays."""

    def get_compaction(self) -> CompactedMessage | None:
        """Return the newest summary, at once."""

    def notify_rounds_changed(self) -> None:
        """Learn that a round began or ended; must return quickly and never raise."""
