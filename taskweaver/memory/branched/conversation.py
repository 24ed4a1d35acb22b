"""Conversations on branches: rounds, posts, round ends and summaries of older rounds.

Bodies are text of the caller's; nothing here looks into them. The state of a round is a row of
its own, so a round without one was torn: its process ended while it was answered.

A summary covers the finished rounds of a branch up to one of them. Rows are derived from rounds
alone, so a fork may read those its ancestors added after the fork too: a row that covers a round
the fork does not see is not used there.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from taskweaver.memory.branched.errors import StoreCorrupt
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.tiers.branches import Branches, BranchView, newest_first
from taskweaver.memory.branched.types import Segment


@dataclass(slots=True)
class RoundRow:
    """A stored round.

    Attributes:
        seq: Its number.
        id: Its id.
        user_query: Request of the user.
        posts: Bodies of its posts, in order.
        state: How it ended; empty while it is open, or when it was torn.
        end_seq: Number of the row that ended it; a fork there sees it whole. 0 for none.
    """

    seq: int
    id: str
    user_query: str
    posts: list[str] = field(default_factory=list)
    state: str = ""
    end_seq: int = 0


@dataclass
class Turns:
    """The conversations of all branches."""

    _database: Database
    _branches: Branches

    def start_round(self, branch_id: str, round_id: str, user_query: str) -> int:
        """Begin a round, and return the number once the row is on disk.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
        """
        return self._branches.insert(branch_id, "rounds", id=round_id, user_query=user_query)

    def add_post(self, branch_id: str, round_seq: int, body: str) -> int:
        """Add a post to a round, and return the number once the row is on disk.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
        """
        return self._branches.insert(branch_id, "posts", round_seq=round_seq, body=body)

    def end_round(self, branch_id: str, round_seq: int, state: str) -> int:
        """End a round, and return the row's number once the row is on disk.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
        """
        return self._branches.insert(branch_id, "round_ends", round_seq=round_seq, state=state)

    def load(self, branch_id: str, *, with_posts: bool = True) -> list[RoundRow]:
        """Return the rounds a branch sees, oldest first, rounds of ancestors included.

        Args:
            branch_id: The branch.
            with_posts: Whether to read the posts too.

        Raises:
            UnknownBranch: If the branch does not exist.
        """
        with self._branches.view(branch_id) as view:
            stored = self._rows(view, "rounds", "id, user_query")
            posts = self._rows(view, "posts", "round_seq, body") if with_posts else []
            ends = self._rows(view, "round_ends", "round_seq, state")
        rounds = {row[0]: RoundRow(*row) for row in stored}
        for _, round_seq, body in posts:
            if round_seq in rounds:
                rounds[round_seq].posts.append(body)
        for seq, round_seq, state in ends:
            if round_seq in rounds:
                rounds[round_seq].state, rounds[round_seq].end_seq = state, seq
        return list(rounds.values())

    def posts_of(self, round_ids: Collection[str]) -> dict[str, list[str]]:
        """Return the bodies of the posts of some rounds, in order, by the round's id."""
        wanted = "SELECT value FROM json_each(?)"
        query = (
            "SELECT r.id, p.body FROM posts p JOIN rounds r ON r.seq = p.round_seq WHERE p.seq IN"
            " (SELECT seq FROM posts WHERE round_seq IN"
            f" (SELECT seq FROM rounds WHERE id IN ({wanted}))) ORDER BY p.seq"
        )
        found: dict[str, list[str]] = {id_: [] for id_ in round_ids}
        with self._database.snapshot() as connection:
            for id_, body in connection.execute(query, (json.dumps(sorted(found)),)):
                found[id_].append(body)
        return found

    def newest(self) -> RoundRow | None:
        """Return the newest round of all branches, if any, without the posts."""
        query = (
            "SELECT r.seq, r.id, r.user_query, coalesce(e.state, ''), coalesce(e.seq, 0)"
            " FROM (SELECT * FROM rounds ORDER BY seq DESC LIMIT 1) r LEFT JOIN round_ends e"
            " ON e.round_seq = r.seq AND e.branch_id = r.branch_id"
        )
        with self._database.snapshot() as connection:
            found = connection.execute(query).fetchone()
        if found is None:
            return None
        seq, id_, text, state, end_seq = found
        return RoundRow(seq, id_, text, [], state, end_seq)

    def last_at(self) -> float:
        """Return when something was last stored of any branch, as a time stamp. 0 for never."""
        newest = "SELECT created_at FROM (SELECT created_at FROM {} ORDER BY seq DESC LIMIT 1)"
        query = " UNION ALL ".join(map(newest.format, ("rounds", "posts", "round_ends")))
        with self._database.snapshot() as connection:
            return max((float(row[0]) for row in connection.execute(query)), default=0.0)

    def _rows(self, view: BranchView, table: str, columns: str) -> list[tuple[Any, ...]]:
        """Return the rows of a table that a branch sees, oldest first."""

        def fetch(reading: sqlite3.Connection, segment: Segment) -> Iterator[tuple[Any, ...]]:
            return reading.execute(
                f"SELECT seq, {columns} FROM {table} WHERE branch_id = ? AND seq <= ?"
                " ORDER BY seq DESC",
                segment,
            )

        return list(newest_first(view.connection, self._branches.path(view), fetch))[::-1]


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


@dataclass
class Summaries:
    """The summaries of all branches and roles."""

    _database: Database
    _branches: Branches

    def add(self, branch_id: str, role: str, text: str, *, up_to_seq: int, count: int) -> int:
        """Add a summary, and return the number once the row is on disk.

        Args:
            branch_id: The branch.
            role: Alias of the role that reads the summary.
            text: The summary.
            up_to_seq: Number of the last covered round.
            count: How many rounds are covered.

        Raises:
            UnknownBranch, BranchSealed: If the branch takes no writes.
        """
        return self._branches.insert(
            branch_id, "summaries", role=role, up_to_seq=up_to_seq, count=count, text=text
        )

    def extents(self, branch_id: str, role: str) -> list[Extent]:
        """Return the extents of a role's summaries on a branch and the ancestors, widest first.

        Raises:
            UnknownBranch: If the branch does not exist.
        """
        with self._branches.view(branch_id) as view:
            line = [segment.branch for segment in self._branches.path(view)]
            rows = view.connection.execute(_EXTENTS, (view.branch.number, role, json.dumps(line)))
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
