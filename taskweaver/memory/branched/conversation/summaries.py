"""Summaries of older rounds: rows of a branch, one for each pass of a role's compactor.

A summary covers the finished rounds of a branch up to one of them. Rows are derived from rounds
alone, so a fork may read those its ancestors added after the fork too: a row that covers a round
the fork does not see is not used there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from taskweaver.memory.branched.errors import StoreCorrupt
from taskweaver.memory.branched.storage.database import Database, Writer
from taskweaver.memory.branched.tiers.branches import Branches

_EXTENTS = """
SELECT seq, up_to_seq, count, branch_id = ? FROM summaries
WHERE role = ? AND branch_id IN (SELECT value FROM json_each(?)) ORDER BY count DESC, seq DESC
"""


@dataclass(frozen=True, slots=True)
class Extent:
    """The rounds a stored summary covers.

    Attributes:
        seq: Number of the summary.
        up_to_seq: Number of the last covered round.
        count: How many rounds are covered.
        is_own: Whether the branch itself added the summary, not an ancestor.
    """

    seq: int
    up_to_seq: int
    count: int
    is_own: bool


class Summaries:
    """The summaries of all branches and roles."""

    def __init__(self, database: Database, branches: Branches) -> None:
        self._database = database
        self._branches = branches

    def add(self, branch_id: str, role: str, text: str, *, up_to_seq: int, count: int) -> int:
        """Add a summary, and return its number once it is on disk.

        Args:
            branch_id: The branch.
            role: Alias of the role that reads the summary.
            text: The summary.
            up_to_seq: Number of the last covered round.
            count: How many rounds are covered.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
        """

        def act(writer: Writer) -> int:
            branch = self._branches.writable(writer, branch_id)
            return writer.insert(
                "summaries",
                branch_id=branch.number,
                role=role,
                up_to_seq=up_to_seq,
                count=count,
                text=text,
                created_at=writer.now,
            )

        return self._database.write(act)

    def extents(self, branch_id: str, role: str) -> list[Extent]:
        """Return the extents of a role's summaries on a branch and its ancestors, widest first.

        Raises:
            UnknownBranch: If the branch does not exist.
        """
        with self._database.snapshot() as connection:
            branch = self._branches.find(connection, branch_id)
            line = [segment.branch for segment in self._branches.path(connection, branch)]
            rows = connection.execute(_EXTENTS, (branch.number, role, json.dumps(line)))
            return [Extent(seq, up_to, count, bool(own)) for seq, up_to, count, own in rows]

    def text(self, seq: int) -> str:
        """Return the text of a summary.

        Raises:
            StoreCorrupt: If it cannot be read.
        """
        with self._database.snapshot() as connection:
            row = connection.execute(
                "SELECT CAST(text AS BLOB) FROM summaries WHERE seq = ?", (seq,)
            ).fetchone()
        try:
            return str(bytes(row[0]), "utf-8")
        except (TypeError, ValueError) as error:
            raise StoreCorrupt(f"summary {seq} is no text: {error}") from error
