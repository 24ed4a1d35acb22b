"""Repair of a damaged memory file: a new file made of the rows that can be read.

SQLite refuses the whole of a file that is shorter than its header says, or whose first pages, which
hold the schema, are damaged. The schema of a memory is known: its pages are those of an empty
memory, as long as both were made by the same steps. They are written to a copy of the file.

SQLite reads a table through pages; a bad one ends a query although the pages behind it are whole.
So each table is read forwards, backwards, and then in small ranges of its key down to single
rows, which skips bad pages at the cost of a few lookups.

A row that does not fit any more, because its branch, its type or its form was damaged, is not
written to the new file; it is returned, so that the caller can keep it elsewhere.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeGuard

from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.branched.storage import schema
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.storage.soundness import NUMBERED, check_values, foreign_objects
from taskweaver.utils.sqlite_files import READ_ERRORS, column_names, harden, insert_row

Row = dict[str, object]
_CHUNK = 128
_MOST_KEYS = 2_000_000
_MOST_ROWS = 20_000_000
_MOST_STEPS = 2_000_000_000
"""Steps of SQLite's machine for one file; pages in a circle would be read for ever."""
_STEPS_AT_ONCE = 100_000


@dataclass(slots=True)
class TableRows:
    """The rows of one table that can be read.

    Attributes:
        rows: The rows, by key.
        lost: Number of rows that are known to be there and cannot be read.
        is_whole: Whether SQLite read the table without an error.
    """

    rows: dict[int, Row] = field(default_factory=dict)
    lost: int = 0
    is_whole: bool = True


def prepare_damaged(connection: sqlite3.Connection) -> None:
    """Prepare a connection for reading a damaged database, and nothing else from now on."""
    harden(connection)
    connection.execute("PRAGMA query_only = ON")
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    calls = count()
    connection.set_progress_handler(
        lambda: next(calls) * _STEPS_AT_ONCE > _MOST_STEPS, _STEPS_AT_ONCE
    )


def read_table(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], *, highest: int = 0
) -> TableRows:
    """Return the rows of a damaged table whose first column is the key.

    Keys are looked for up to `highest`, if the table itself does not say.
    """
    found = TableRows()
    key = columns[0]
    select = f"SELECT {', '.join(columns)} FROM {table}"

    def scan(rest: str, *values: object) -> bool:
        """Add the rows of a query, and return whether the query ended without an error."""
        try:
            for number, row in enumerate(connection.execute(f"{select} {rest}", values)):
                if number > _MOST_ROWS:
                    return False
                found.rows.setdefault(row[0], dict(zip(columns, row, strict=True)))
        except READ_ERRORS:
            return False
        return True

    found.is_whole = scan(f"ORDER BY {key}")
    listed = _listed(connection, table, key)
    if not found.is_whole or listed - found.rows.keys():
        scan(f"ORDER BY {key} DESC")
        between = f"WHERE {key} BETWEEN ? AND ? ORDER BY {key}"
        end = min(max([highest, *found.rows, *listed]), _MOST_KEYS)
        for low in range(1, end + 1, _CHUNK):
            high = min(end, low + _CHUNK - 1)
            if not scan(between, low, high):
                for number in set(range(low, high + 1)) - found.rows.keys():
                    scan(between, number, number)
        for number in listed - found.rows.keys():
            scan(f"WHERE {key} = ?", number)
    found.lost = len(listed - found.rows.keys())
    found.is_whole = found.is_whole and not found.lost
    return found


def _listed(connection: sqlite3.Connection, table: str, key: str) -> set[int]:
    """Return the keys in the readable indexes of a table."""
    found: set[int] = set()
    try:
        indexes = [row[1] for row in connection.execute(f"PRAGMA index_list({table})")]
    except READ_ERRORS:
        return found
    for index in indexes:
        with suppress(*READ_ERRORS):  # a partial index, or a damaged one
            query = f"SELECT {key} FROM {table} INDEXED BY {index}"
            found.update(row[0] for row in connection.execute(query))
    return found


_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_PAGE_BYTES = 4096
_INTERIOR = 5
_MOST_PAGES = 64


def fit_length(path: Path) -> None:
    """Have the header of a file name the length that the file has.

    A file that was emptied gets one page, without which SQLite would delete its write-ahead log.

    Raises:
        OSError: If the file cannot be written.
    """
    size = path.stat().st_size
    with path.open("r+b") as file:
        if size == 0:
            file.truncate(_PAGE_BYTES)
            return
        header = bytearray(file.read(_HEADER_BYTES))
        page = int.from_bytes(header[16:18])
        if not header.startswith(_MAGIC) or page < 512 or page & (page - 1):
            return
        pages = -(-size // page)
        if int.from_bytes(header[28:32]) > pages or size % page:
            file.truncate(pages * page)
            _name_length(header, pages)
            file.seek(0)
            file.write(header)


def _name_length(header: bytearray, pages: int) -> None:
    header[28:32] = pages.to_bytes(4)
    header[32:40] = bytes(8)  # no free pages: those that are listed may be beyond the end
    header[92:96] = header[24:28]  # the length counts only if these are equal


def restore_schema(path: Path) -> None:
    """Overwrite the schema pages of a file with the schema pages of an empty memory.

    Raises:
        OSError: If the file cannot be written.
        sqlite3.Error: If no empty memory can be made.
    """
    pages, least = _schema_pages()
    count = max(-(-path.stat().st_size // _PAGE_BYTES), least)  # tables beyond the end are refused
    first = bytearray(pages[1])
    _name_length(first, count)
    with path.open("r+b") as file:
        file.truncate(count * _PAGE_BYTES)
        for number, data in {**pages, 1: bytes(first)}.items():
            file.seek((number - 1) * _PAGE_BYTES)
            file.write(data)


@cache
def _schema_pages() -> tuple[dict[int, bytes], int]:
    """Return the schema pages of an empty memory, by number, and the number of all pages."""
    with TemporaryDirectory(prefix="taskweaver-repair-") as folder:
        place = Path(folder) / "empty.sqlite"
        Database(place).close()
        with closing(sqlite3.connect(place)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        data = place.read_bytes()
    found: dict[int, bytes] = {}
    waiting = [1]
    while waiting and len(found) < _MOST_PAGES:
        number = waiting.pop()
        page = data[(number - 1) * _PAGE_BYTES : number * _PAGE_BYTES]
        found[number] = page
        waiting += _children(page, _HEADER_BYTES if number == 1 else 0)
    return found, len(data) // _PAGE_BYTES


def _children(page: bytes, start: int) -> list[int]:
    """Return the pages below one of a table's tree."""
    if page[start] != _INTERIOR:
        return []
    count = int.from_bytes(page[start + 3 : start + 5])
    cells = (
        int.from_bytes(page[place : place + 2])
        for place in range(start + 12, start + 12 + 2 * count, 2)
    )
    below = [int.from_bytes(page[cell : cell + 4]) for cell in cells]
    return [*below, int.from_bytes(page[start + 8 : start + 12])]


Fits = Callable[[str, Row], str]
"""Returns why a row of a table cannot be used; empty when it can."""
_ROOT = "main"
"""Name of the first branch of a session."""
LOST_QUERY = "(this question could not be recovered)"
_EVERY = ("branches", *NUMBERED)
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
    """Return the rows of a file that can be read, by table, and the clock.

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
    """Return the tables of a file and the clock, or nothing without a schema of this program."""
    with (
        closing(sqlite3.connect(copy, isolation_level=None)) as connection,
        closing(sqlite3.connect(":memory:")) as empty,
    ):
        try:
            prepare_damaged(connection)
            version = schema.version_of(connection) or 0
            foreign = " ".join(foreign_objects(connection))
        except READ_ERRORS:
            return {}, 0
        if not 1 <= version <= schema.VERSION:
            return {}, 0
        schema.build(empty, version)
        clock = read_table(connection, "clock", ("one", "seq")).rows.get(1, {}).get("seq", 0)
        highest = clock if isinstance(clock, int) and 0 < clock < _HIGHEST_SEQ else 0
        found = {}
        for table in _EVERY:
            columns = column_names(empty, table)
            if not columns:  # its version had no such table
                found[table] = TableRows()
            elif f"table {table} was changed" not in foreign:
                found[table] = read_table(connection, table, columns, highest=highest)
        return found, highest


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
        for table in NUMBERED:
            found = tables.get(table, TableRows()).rows
            for key in sorted(found):
                self._copy_row(table, key, found[key])
        self._remake_rounds()
        connection = self._writer.connection
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
        named = {
            owner
            for table in NUMBERED
            for row in tables.get(table, TableRows()).rows.values()
            if _is_branch(owner := row["branch_id"])
        }
        for number in sorted(named - self._branches if not stored.is_whole else ()):
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
        """Return the problem of a row, if any."""
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


def _is_branch(number: object) -> TypeGuard[int]:
    return isinstance(number, int) and 0 < number < _HIGHEST_BRANCH
