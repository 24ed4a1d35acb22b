"""Maintenance of a file: seals and prunes branches, removes unseen rows, checks, and backs up."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from taskweaver.memory.branched.errors import StoreCorrupt, is_of_the_system
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.storage.schema import EVENTS, RECORDS, clear_search
from taskweaver.memory.branched.storage.soundness import NUMBERED, problems
from taskweaver.memory.branched.tiers.branches import Branches
from taskweaver.memory.branched.types import FOREVER, Branch, BranchState
from taskweaver.utils.sqlite_files import READ_ERRORS

_COUNTED = {"rounds": "rounds", "core_kv": "core", "events": "events", "archival": "archival"}


@dataclass(slots=True)
class Garbage:
    """Ids of branches and numbers of rows by table: removed, or only counted if `is_dry`."""

    branches: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    is_dry: bool = False


@dataclass(frozen=True, slots=True)
class Health:
    """Outcome of a check of a file.

    Attributes:
        problems: Problems, a line each; empty when all is well.
        branches: How many branches there are.
        rows: Numbers of rows by table.
    """

    problems: tuple[str, ...]
    branches: int
    rows: dict[str, int]

    @property
    def is_sound(self) -> bool:
        """Whether there is no problem."""
        return not self.problems


@dataclass
class Upkeep:
    """Looks after a file."""

    _database: Database
    _branches: Branches

    def set_state(self, branch_id: str, state: BranchState, *, is_whole: bool = False) -> list[str]:
        """Seal, prune or open a branch, with `is_whole` also the descendants, and return the ids.

        Raises:
            UnknownBranch: If the branch does not exist.
        """

        def act(writer: Writer) -> list[str]:
            top = self._branches.find(writer.connection, branch_id)
            branches = self._branches.all(writer.connection) if is_whole else [top]
            chosen = subtree(branches, top)
            for branch in chosen:
                self._branches.set_state(writer, branch, state)
            return [branch.id for branch in chosen]

        return self._database.write(act)

    def collect(self, *, dry_run: bool = False) -> Garbage:
        """Remove the rows that only pruned branches see, or with `dry_run` only count the rows.

        A row that a branch in use inherits stays. The index is emptied, and the next search fills
        it anew.
        """

        def act(writer: Writer) -> Garbage:
            garbage = Garbage(is_dry=dry_run)
            writer.known.forget()
            needed = _needed(self._branches.all(writer.connection))
            for branch, end in needed:
                self._remove(writer.connection, branch, end, garbage)
            if not dry_run:
                clear_search(writer.connection)
                for branch, end in reversed(needed):
                    if end < 0:
                        writer.connection.execute(
                            "DELETE FROM branches WHERE id = ?", (branch.number,)
                        )
            return garbage

        found = self._database.write(act)
        self._branches.forget()
        return found

    def _remove(
        self, connection: sqlite3.Connection, branch: Branch, end: int, garbage: Garbage
    ) -> None:
        if end < 0:
            garbage.branches.append(branch.id)
        verb = "SELECT 1" if garbage.is_dry else "DELETE"
        for table in NUMBERED:
            rows = "branch_id = ? AND seq > ?"
            cursor = connection.execute(f"{verb} FROM {table} WHERE {rows}", (branch.number, end))
            count = len(cursor.fetchall()) if garbage.is_dry else cursor.rowcount
            if count:
                garbage.rows[table] = garbage.rows.get(table, 0) + count

    def counts(self) -> dict[str, dict[str, int]]:
        """Return how much each branch wrote itself, by branch id and part."""
        with self._database.snapshot() as connection:
            ids = {branch.number: branch.id for branch in self._branches.all(connection)}
            found = {id_: dict.fromkeys(_COUNTED.values(), 0) for id_ in ids.values()}
            for table, name in _COUNTED.items():
                query = f"SELECT branch_id, count(*) FROM {table} GROUP BY branch_id"
                for number, count in connection.execute(query):
                    found[ids[number]][name] = count
        return found

    def verify(self) -> Health:
        """Check the file: SQLite's own checks, the index, each row, and invariants between rows."""
        with self._database.snapshot() as connection:
            found = problems(connection)
            rows = {table: _count(connection, table) for table in NUMBERED}
            count = _count(connection, "branches")
        if self._database.has_search:
            found += self._index_problems()
        return Health(tuple(found), count, rows)

    def _index_problems(self) -> list[str]:
        def act(writer: Writer) -> None:
            for name in (RECORDS, EVENTS):
                writer.connection.execute(f"INSERT INTO {name} ({name}) VALUES ('integrity-check')")

        try:
            self._database.write(act)
        except StoreCorrupt as error:
            return [f"the full-text index is damaged: {error}"]
        return []


def _count(connection: sqlite3.Connection, table: str) -> int:
    """Return the number of rows of a table, 0 for an unreadable table."""
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except READ_ERRORS as error:
        if is_of_the_system(error):
            raise
        return 0


def subtree(branches: Iterable[Branch], top: Branch) -> list[Branch]:
    """Return a branch and the descendants. `branches` has parents before children."""
    chosen = {top.number: top}
    for branch in branches:
        if branch.parent in chosen:
            chosen[branch.number] = branch
    return list(chosen.values())


def _needed(branches: list[Branch]) -> list[tuple[Branch, int]]:
    """Return the pruned branches, and the newest row of each that a branch in use sees.

    -1 stands for none, so that the branch itself can go.
    """
    by_number = {branch.number: branch for branch in branches}
    ends: dict[int, int] = {}
    for branch in branches:
        if branch.state == "pruned":
            continue
        end, parent = branch.fork_seq, branch.parent
        while parent is not None:
            above = by_number[parent]
            seen = FOREVER if above.live else end
            if ends.get(parent, -1) >= seen:
                break
            ends[parent] = seen
            end, parent = min(end, above.fork_seq), above.parent
    return [
        (branch, ends.get(branch.number, -1)) for branch in branches if branch.state == "pruned"
    ]
