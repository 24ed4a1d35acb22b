"""The stored summaries of one role's rounds on one branch of a memory file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from taskweaver.memory.branched.conversation.summaries import Extent
from taskweaver.memory.branched.conversation.turns import RoundRow
from taskweaver.memory.branched.errors import BranchedMemoryError, InvalidUpdate
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.summaries.compacted import CompactedMessage
from taskweaver.memory.summaries.ledger import LEDGER_CHARS
from taskweaver.memory.summaries.schedule import SUMMARY_CHARS
from taskweaver.memory.utils import encodable

_UNREADABLE = (BranchedMemoryError, sqlite3.Error)
_NOT_COVERED = ("", "failed")
"""States of rounds no summary covers: still open or torn, and failed."""


class BranchSummaries:
    """A `SummaryStore` for one role on one branch."""

    def __init__(self, store: BranchedMemory, branch_id: str, role: str) -> None:
        self._store = store
        self._branch_id = branch_id
        self._role = role

    def load(self, retain_recent: int, warn: Callable[[str], None]) -> CompactedMessage | None:
        """Return the summary that covers most of the branch's rounds; None without one.

        Args:
            retain_recent: How many of the newest rounds an ancestor's summary must leave out.
            warn: Called with a sentence for each summary that is damaged or does not fit.
        """
        try:
            rounds = self._coverable()
            extents = self._store.summaries.extents(self._branch_id, self._role)
        except _UNREADABLE as error:
            warn(f"stored summaries of old rounds are not used: {error}")
            return None
        for extent in extents:
            covered = _covered(rounds, extent)
            left = len(rounds) - len(covered or rounds)
            if not extent.is_own and (covered is None or left < retain_recent):
                continue
            try:
                return self._message(covered, extent)
            except _UNREADABLE as error:
                warn(f"a stored summary of old rounds is not used: {error}")
        return None

    def save(self, summary: CompactedMessage) -> None:
        """Store a summary; it is on disk when this returns.

        Raises:
            InvalidUpdate: If it does not cover the branch's first rounds, and only those.
            BranchedMemoryError: If it cannot be written.
        """
        rounds = self._coverable()[: len(summary.round_ids)]
        if not rounds or {stored.id for stored in rounds} != summary.round_ids:
            raise InvalidUpdate("summary", "covers other rounds than the oldest of this branch")
        text = encodable(summary.summary)
        self._store.summaries.add(
            self._branch_id, self._role, text, up_to_seq=rounds[-1].seq, count=len(rounds)
        )

    def _coverable(self) -> list[RoundRow]:
        stored = self._store.turns.load(self._branch_id, with_posts=False)
        return [round_ for round_ in stored if round_.state not in _NOT_COVERED]

    def _message(self, covered: Sequence[RoundRow] | None, extent: Extent) -> CompactedMessage:
        if covered is None or len(covered) != extent.count:
            raise InvalidUpdate(f"summary {extent.seq}", "does not fit the rounds of this branch")
        text = self._store.summaries.text(extent.seq).strip()
        if not 0 < len(text) <= SUMMARY_CHARS + LEDGER_CHARS:
            raise InvalidUpdate(f"summary {extent.seq}", f"has {len(text):,} characters")
        ids = frozenset(stored.id for stored in covered)
        return CompactedMessage(1, len(ids), text, covered[-1].id, ids)


def _covered(rounds: Sequence[RoundRow], extent: Extent) -> Sequence[RoundRow] | None:
    """Return the rounds up to the last one of an extent; None when that one is not among them."""
    for number, stored in enumerate(rounds, 1):
        if stored.seq == extent.up_to_seq:
            return rounds[:number]
    return None
