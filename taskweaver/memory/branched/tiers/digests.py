"""Digests: summaries of all events of a view up to a row.

A descendant goes on from the digest of its ancestor.
"""

from __future__ import annotations

import json
import sqlite3

from taskweaver.memory.branched.storage.database import Writer
from taskweaver.memory.branched.tiers.branches import Branches
from taskweaver.memory.branched.types import Branch, Digest
from taskweaver.memory.branched.values import dump

RECALL = "recall"
_COLUMNS = "seq, branch_id, subject, up_to_seq, count, text, created_at"


class Digests:
    """The digests of all branches."""

    def __init__(self, branches: Branches) -> None:
        self._branches = branches

    def newest(
        self,
        connection: sqlite3.Connection,
        branch: Branch,
        subject: str,
        *,
        at: int | None = None,
    ) -> Digest | None:
        """Return the newest digest of a subject that a branch sees, or None."""
        for segment in self._branches.path(connection, branch, "digests", at):
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM digests WHERE branch_id = ? AND subject = ? AND seq <= ?"
                " ORDER BY seq DESC LIMIT 1",
                (segment.branch, subject, segment.up_to),
            ).fetchone()
            if row is not None:
                return Digest(*row)
        return None

    def kinds(self, connection: sqlite3.Connection, digest: Digest | None) -> dict[str, int]:
        """Return how many events of each kind a digest covers."""
        if digest is None:
            return {}
        row = connection.execute("SELECT kinds FROM digests WHERE seq = ?", (digest.seq,))
        kinds: dict[str, int] = json.loads(row.fetchone()[0])
        return kinds

    def add(
        self,
        writer: Writer,
        branch: Branch,
        before: Digest | None,
        up_to: int,
        kinds: dict[str, int],
        text: str,
    ) -> bool:
        """Add a digest of recall that follows on another; return False if another was faster."""
        newest = self.newest(writer.connection, branch, RECALL)
        if (newest and newest.seq) != (before and before.seq):
            return False
        writer.insert(
            "digests",
            branch_id=branch.number,
            subject=RECALL,
            up_to_seq=up_to,
            count=sum(kinds.values()),
            kinds=dump(kinds),
            text=text,
            created_at=writer.now,
        )
        return True
