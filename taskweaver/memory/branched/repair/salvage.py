"""A new memory file made of the rows that can be read in a damaged one.

A row that does not fit any more, because its branch, its type or its form was damaged, is not
written to the new file; it is returned, so that the caller can keep it elsewhere.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.repair.damaged_rows import DamagedFile, Row, TableRows
from taskweaver.memory.branched.repair.page_repair import fit_length, restore_schema
from taskweaver.memory.branched.storage import schema
from taskweaver.memory.branched.storage.database import Database, Writer
from taskweaver.memory.branched.storage.schema_check import foreign_objects
from taskweaver.memory.branched.storage.soundness import check_values
from taskweaver.utils.sqlite_files import READ_ERRORS, column_names, insert_row

Fits = Callable[[str, Row], str]
"""Returns why a row of a table cannot be used; empty when it can."""
_ROOT = "main"
"""Name of the first branch of a session."""
LOST_QUERY = "(this question could not be recovered)"
_NUMBERED = (*schema.TIERS, "injections")
_EVERY = ("branches", *_NUMBERED)
"""The tables that are saved, branches before the rows that belong to them; no caches."""
_HIGHEST_SEQ = 1 << 53
_HIGHEST_BRANCH = 1 << 31
_EARLIER = {"digests": "up_to_seq", "summaries": "up_to_seq"}
"""Columns that refer to an earlier row."""


@dataclass(frozen=True, slots=True)
class UnfitRow:
    """A row, by column, that can be read and not be used, and the reason."""

    table: str
    row: Row
    reason: str


@dataclass(slots=True)
class Salvage:
    """Outcome of a salvage.

    Attributes:
        saved: Number of rows in the new file, by table.
        lost: Number of rows that are known to have been there and cannot be read, by table.
        damaged: Tables of which a part could not be read; how many rows it had may be unknown.
        unfit: Rows that can be read and not be used.
        remade: Branches and rounds that were made anew because other rows belong to them.
    """

    saved: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    unfit: list[UnfitRow] = field(default_factory=list)
    remade: list[str] = field(default_factory=list)


def readable_rows(copy: Path) -> tuple[dict[str, TableRows], int]:
    """Return the rows of a file that can be read, by table, and its clock.

    A table that is a view, or has another form than this program gives it, is not read. It is read
    in a copy of the file, which is changed so that SQLite reads it.

    Raises:
        OSError: If the copy cannot be written.
    """
    fit_length(copy)
    found, clock = _tables(copy)
    if len(found) < len(_EVERY):
        restore_schema(copy)
        more, other_clock = _tables(copy)
        found, clock = more | found, max(clock, other_clock)
    return {table: found[table] for table in _EVERY if table in found}, clock


def _tables(copy: Path) -> tuple[dict[str, TableRows], int]:
    """Return the tables of a file and its clock; nothing if it has no schema of this program."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        try:
            file = DamagedFile(connection)
            version = schema.version_of(connection) or 0
            foreign = " ".join(foreign_objects(connection))
        except READ_ERRORS:
            return {}, 0
        if not 1 <= version <= schema.VERSION:
            return {}, 0
        clock = file.read("clock", ("one", "seq")).rows.get(1, {}).get("seq", 0)
        highest = clock if isinstance(clock, int) and 0 < clock < _HIGHEST_SEQ else 0
        found = {}
        for table, columns in columns_of(version).items():
            if not columns:  # its version had no such table
                found[table] = TableRows()
            elif f"table {table} was changed" not in foreign:
                found[table] = file.read(table, columns, highest=highest)
        return found, highest


def columns_of(version: int) -> dict[str, list[str]]:
    """Return the columns of each table, the key first; none of a table that a version lacks."""
    with closing(sqlite3.connect(":memory:")) as connection:
        schema.build(connection, version)
        return {table: column_names(connection, table) for table in _EVERY}


def salvage(
    tables: Mapping[str, TableRows],
    clock: int,
    target: Path,
    *,
    fits: Fits,
) -> Salvage:
    """Write a new file with the rows of a damaged one.

    Args:
        tables: The rows, see `readable_rows`.
        clock: The clock of the damaged file; 0 if it cannot be read.
        target: The new file; it must not exist.
        fits: Judges each row.

    Raises:
        StoreUnwritable: If the file cannot be written.
    """
    database = Database(target, synchronous="NORMAL")
    try:
        result = database.write(lambda writer: _Copy(writer, fits).run(tables, clock))
        database.write_through()
        return result
    finally:
        database.close()


class _Copy:
    """One copy of rows into a new file."""

    def __init__(self, writer: Writer, fits: Fits) -> None:
        self._writer = writer
        self._fits = fits
        self._seqs: set[int] = set()
        self._events: set[int] = set()
        self._branches: set[int] = set()
        self.result = Salvage()

    def run(self, tables: Mapping[str, TableRows], clock: int) -> Salvage:
        for table, rows in tables.items():
            if rows.lost:
                self.result.lost[table] = rows.lost
            if not rows.is_whole:
                self.result.damaged.append(table)
        self.result.damaged += [name for name in _EVERY if name not in tables]
        self._copy_branches(tables)
        for table in _NUMBERED:
            found = tables.get(table, TableRows()).rows
            for key in sorted(found):
                self._copy_row(table, key, found[key])
        self._remake_rounds()
        connection = self._writer.connection
        schema.index_records(connection, "TRUE")
        highest = max([clock, *self._seqs])
        connection.execute("UPDATE clock SET seq = ?", (highest,))
        connection.execute("UPDATE branches SET fork_seq = min(fork_seq, ?)", (highest,))
        return self.result

    def _copy_branches(self, tables: Mapping[str, TableRows]) -> None:
        stored = tables.get("branches", TableRows(is_whole=False))
        names: set[object] = set()
        for number in sorted(filter(_is_branch, stored.rows)):
            row = dict(stored.rows[number])
            name = row["name"]
            if not isinstance(name, str) or not name or not name.isprintable() or name in names:
                row["name"] = _ROOT if number == 1 else f"recovered-{number}"
            if row["parent_id"] not in self._branches:
                row["parent_id"] = None
            if self._insert("branches", row):
                names.add(row["name"])
                self._branches.add(number)
        lost = set() if stored.is_whole else _named_branches(tables) - self._branches
        for number in sorted(lost):
            is_root = number == 1 and _ROOT not in names
            name = _ROOT if is_root else f"recovered-{number}"
            self._remake_branch(number, name)
            names.add(name)
        if _ROOT not in names:
            self._remake_branch(None, _ROOT)

    def _remake_branch(self, number: int | None, name: str) -> None:
        row = {"id": number, "name": name, "fork_seq": 0, "created_at": self._writer.now}
        self._branches.add(insert_row(self._writer.connection, "branches", row))
        self.result.remade.append(f"branch {name}")

    def _copy_row(self, table: str, seq: int, row: Row) -> None:
        reason = self._problem(table, seq, row)
        if reason:
            self.result.unfit.append(UnfitRow(table, row, reason))
        elif self._insert(table, row):
            self._seqs.add(seq)
            if table == "events":
                self._events.add(seq)

    def _problem(self, table: str, seq: int, row: Row) -> str:
        """Return why a row cannot be used; empty when it can."""
        problem = self._reference_problem(table, seq, row)
        if problem:
            return problem
        try:
            check_values(table, row)
        except (InvalidUpdate, ValueError, TypeError, RecursionError) as error:
            return str(error)[:200]
        return self._fits(table, row)

    def _reference_problem(self, table: str, seq: int, row: Row) -> str:
        if not 0 < seq < _HIGHEST_SEQ or seq in self._seqs:
            return f"its number {seq} cannot be used"
        if row["branch_id"] not in self._branches:
            return f"its branch {row['branch_id']!r:.40} does not exist"
        earlier = row.get(_EARLIER.get(table, ""), 0)
        if not (isinstance(earlier, int) and earlier < seq):
            return "it refers to a later row"
        if table == "events" and row["repeats"] is not None and row["repeats"] not in self._events:
            return "it repeats an event that does not exist"
        return ""

    def _insert(self, table: str, row: Row) -> bool:
        try:
            insert_row(self._writer.connection, table, row)
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError, OverflowError) as error:
            self.result.unfit.append(UnfitRow(table, row, str(error)))
            return False
        self.result.saved[table] += 1
        return True

    def _remake_rounds(self) -> None:
        """Make the rounds that posts belong to and that are lost, so that the posts are seen."""
        orphans = self._writer.connection.execute(
            "SELECT round_seq, min(branch_id), min(seq), min(created_at) FROM posts"
            " WHERE round_seq NOT IN (SELECT seq FROM rounds) GROUP BY round_seq"
        ).fetchall()
        for seq, branch, first_post, time in orphans:
            if seq in self._seqs or not 0 < seq < first_post:
                continue
            self._writer.connection.execute(
                "INSERT INTO rounds VALUES (?, ?, ?, ?, ?)",
                (seq, branch, f"recovered-{seq}", LOST_QUERY, time),
            )
            self._seqs.add(seq)
            self.result.remade.append(f"round {seq}")


def _named_branches(tables: Mapping[str, TableRows]) -> set[int]:
    """Return the numbers of branches that rows belong to."""
    rows: Iterable[Row] = (
        row for table in _NUMBERED if table in tables for row in tables[table].rows.values()
    )
    return {number for row in rows if _is_branch(number := row["branch_id"])}


def _is_branch(number: object) -> TypeGuard[int]:
    return isinstance(number, int) and 0 < number < _HIGHEST_BRANCH
