"""`memory_primitive.jsonl`: one JSON line for each row of core, recall and archival memory.

A commit only notes the sequence numbers it gave out; the rows are read back from the file when the
lines are written. So a line that cannot be written waits in the database and not in memory, and is
written later; a row that was rolled back is in no log. `rebuild` makes a memory from the lines.

A line has the fields of all logs, ``file`` (the name of the memory's file, as several in one folder
share a log) and one of these:

- ``table`` and ``row``: a row that was added, under its ``seq``.
- ``branch``: a branch that was made.
- ``change``: a change that adds no row (a seal, a name, a collection of garbage), with its ``seq``.
- ``skip``: ranges of sequence numbers of rows that the log leaves out: conversations, prompts.
- ``writer``: the beginning (``open``) and the end (``close``) of a process's lines.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from taskweaver.memory.branched.logs.log_files import LogFolder
from taskweaver.memory.branched.logs.log_lines import Line, display_phase, encoded, head, masked_row
from taskweaver.memory.branched.storage.changes import CommitChange
from taskweaver.memory.branched.storage.database import Database

ROWS_FILE = "memory_primitive.jsonl"
LOGGED = ("core_kv", "events", "archival", "exclusions", "digests")
"""Tables whose rows are in the log."""
BRANCH_COLUMNS = ("id", "name", "node_uid", "parent_id", "fork_seq", "live", "state", "created_at")
JSON_COLUMNS = ("tags", "data", "meta", "kinds")
DERIVED = ("text_hash", "place")
"""Columns that are computed from others, and left out."""

_OPS = {
    "core_kv": ("set_core", "core"),
    "events": ("write_event", "recall"),
    "archival": ("write_archival", "archival"),
    "exclusions": ("hide_event", "recall"),
    "digests": ("write_digest", "recall"),
}
_AT_ONCE = 256
"""Sequence numbers whose lines are written with one call."""
_MOST_PER_FLUSH = 4096
_MOST_RANGES = 1000
_MOST_CHANGES = 10_000

Range = tuple[int, int]
_Numbered = tuple[int, str]
"""The number up to which the log is complete when a line is written, and the line."""


class RowLog:
    """Writes the rows of a memory to its log. Methods may be called from any thread."""

    def __init__(self, database: Database, files: LogFolder, *, run_id: str = "") -> None:
        """Begin with the next commit.

        Args:
            database: The memory.
            files: The folder of the log.
            run_id: The run that every line names.

        Raises:
            StoreCorrupt: If the branches cannot be read.
        """
        self._database = database
        self._files = files
        self._run_id = run_id or None
        self._writer = os.urandom(6).hex()
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._ranges: list[Range] = []
        self._changes: dict[int, CommitChange] = {}
        self._connection: sqlite3.Connection | None = None
        self._has_tried = False
        self._has_begun = False
        self._is_closed = False
        with database.snapshot() as connection:
            newest = connection.execute("SELECT coalesce(max(id), 0) FROM branches").fetchone()
            self._schema = _schema(connection)
        self._branch = int(newest[0])
        database.on_commit = self._committed

    @property
    def is_new(self) -> bool:
        """Whether rows wait to be the first of this process: those are written at once."""
        return not self._has_tried and bool(self._ranges)

    def _committed(self, first: int, last: int, changes: Sequence[CommitChange]) -> None:
        with self._lock:
            self._wait(first, last)
            for change in changes:
                self._changes[change.seq] = change
            while len(self._changes) > _MOST_CHANGES:  # missing numbers tell `rebuild`
                del self._changes[next(iter(self._changes))]

    def _wait(self, first: int, last: int) -> None:
        if self._ranges and self._ranges[-1][1] == first - 1:
            first = self._ranges.pop()[0]
        self._ranges.append((first, last))
        if len(self._ranges) > _MOST_RANGES:
            # Rows between them are other processes' and are in the log twice then.
            firsts, lasts = zip(*self._ranges, strict=True)
            self._ranges = [(min(firsts), max(lasts))]

    def flush(self, *, is_last: bool = False) -> None:
        """Write lines of the commits so far, as far as possible; never raises.

        Args:
            is_last: Whether all must be written, however many they are.
        """
        with self._flushing:
            if self._is_closed:
                return
            with self._lock:
                ranges, self._ranges = self._ranges, []
                self._has_tried = self._has_tried or bool(ranges)
            left = self._write_all(ranges, None if is_last else _MOST_PER_FLUSH)
            with self._lock:
                newer, self._ranges = self._ranges, []
                for first, last in (*left, *newer):
                    self._wait(first, last)

    def has_lost_rows(self) -> bool:
        """Return whether rows may have been erased since the last call, by any process."""
        with self._flushing:
            if self._is_closed:
                return False
            try:
                former, self._schema = self._schema, _schema(self._reader())
            except sqlite3.Error as error:
                self._files.lose(ROWS_FILE, 0, error)
                return True
            return former != self._schema

    def close(self) -> None:
        """Write the waiting lines and the end of this process's lines; never raises."""
        self.flush(is_last=True)
        with self._flushing:
            if self._is_closed:
                return
            self._is_closed = True
            if self._has_begun:
                self._files.append(ROWS_FILE, [self._mark("close")])
            if self._connection is not None:
                self._connection.close()

    def _write_all(self, ranges: Sequence[Range], most: int | None) -> list[Range]:
        """Write the lines of ranges, or those of the first `most` numbers; return the others."""
        left = [part for whole in ranges for part in parts(whole, _AT_ONCE)]
        try:
            connection = self._reader()
            self._branch = max(self._branch, self._write(self._branch_lines(connection)))
            while left and (most is None or most > 0):
                first, last = left[0]
                done = self._write(self._row_lines(connection, first, last))
                if done < last:
                    left[0] = (max(first, done + 1), last)
                    break
                with self._lock:
                    for seq in [seq for seq in self._changes if first <= seq <= last]:
                        del self._changes[seq]
                most = None if most is None else most - (last - first + 1)
                left.pop(0)
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as error:
            self._files.lose(ROWS_FILE, 0, error)
        return left

    def _reader(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._database.connect_reader()
        return self._connection

    def _write(self, lines: Sequence[_Numbered]) -> int:
        """Write lines; return the number up to which the log is complete now, 0 for none."""
        if not lines:
            return 0
        texts = [text for _, text in lines]
        begin = [] if self._has_begun else [self._mark("open")]
        count = self._files.append(ROWS_FILE, [*begin, *texts], is_kept=True)
        self._has_begun = self._has_begun or count > 0
        count -= len(begin)
        return lines[count - 1][0] if count > 0 else 0

    def _branch_lines(self, connection: sqlite3.Connection) -> list[_Numbered]:
        query = f"SELECT {', '.join(BRANCH_COLUMNS)} FROM branches WHERE id > ? ORDER BY id"
        lines = []
        for values in connection.execute(query, (self._branch,)):
            branch = masked_row(dict(zip(BRANCH_COLUMNS, values, strict=True)))
            op = "create_branch" if branch["parent_id"] is None else "fork"
            line = self._head(op, "branch", branch["name"], ts=branch["created_at"])
            line["node_id"] = branch["node_uid"]
            lines.append((int(branch["id"]), encoded({**line, "branch": branch})))
        return lines

    def _row_lines(self, connection: sqlite3.Connection, first: int, last: int) -> list[_Numbered]:
        """Return the lines of a range, ordered by number; numbers without a row come first."""
        names: dict[int, str] = {}
        found: list[_Numbered] = []
        for table in LOGGED:
            for row in _rows(connection, table, first, last):
                number = row["branch_id"]
                if number not in names:
                    names[number] = _name(connection, number)
                found.append((row["seq"], self._row_line(table, row, names[number])))
        with self._lock:
            changes = [self._changes[seq] for seq in self._changes if first <= seq <= last]
        found += [(change.seq, self._change_line(change)) for change in changes]
        found.sort()
        logged = [(seq, seq) for seq, _ in found]
        skipped = list(gaps([*logged, (last + 1, last + 1)], first=first))
        if skipped:
            line = {**self._head("skip", "log"), "skip": skipped}
            found.insert(0, (first - 1, encoded(line)))
        return [*found[:-1], (last, found[-1][1])]

    def _row_line(self, table: str, row: dict[str, Any], branch: str) -> str:
        op, memory_type = _OPS[table]
        seq = row.pop("seq")
        if table == "core_kv" and row["value"] is None:
            op = "core_delete"
        elif table == "archival" and row.get("is_deleted"):
            op = "delete_archival"
        elif table == "archival" and row["record"] != seq:
            op = "update_archival"
        row = masked_row(row)
        line = self._head(op, memory_type, branch, ts=row.get("created_at") or None)
        data = row.get("data")
        if isinstance(data, dict):
            phase = data.get("phase")
            line["node_id"] = data.get("node_id")
            line["phase"] = display_phase(phase) if isinstance(phase, str) else None
        return encoded({**line, "seq": seq, "table": table, "row": row})

    def _change_line(self, change: CommitChange) -> str:
        line = self._head(change.op, "branch", ts=change.at)
        facts = masked_row(dict(change.facts))
        return encoded({**line, "seq": change.seq, "change": facts})

    def _mark(self, op: str) -> str:
        return encoded({**self._head(op, "log"), "writer": self._writer})

    def _head(
        self, op: str, memory_type: str, branch: str | None = None, *, ts: float | None = None
    ) -> Line:
        name = self._database.path.name
        line = head(op, "primitive", memory_type, ts=ts, branch_id=branch, run_id=self._run_id)
        return {**line, "file": name}


def _schema(connection: sqlite3.Connection) -> int:
    """Return the number of the schema, which an erasure changes when it removes free pages."""
    return int(connection.execute("PRAGMA schema_version").fetchone()[0])


def parts(whole: Range, size: int) -> Iterator[Range]:
    """Split a range into parts of a size."""
    first, last = whole
    for begin in range(first, last + 1, size):
        yield begin, min(last, begin + size - 1)


def _rows(
    connection: sqlite3.Connection, table: str, first: int, last: int
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a range as a line has them: JSON as data, nothing that is computed."""
    cursor = connection.execute(
        f"SELECT * FROM {table} WHERE seq BETWEEN ? AND ? ORDER BY seq", (first, last)
    )
    names = [column[0] for column in cursor.description]
    for values in cursor:
        yield {
            name: json.loads(value) if name in JSON_COLUMNS else value
            for name, value in zip(names, values, strict=True)
            if name not in DERIVED
        }


def _name(connection: sqlite3.Connection, number: int) -> str:
    row = connection.execute("SELECT name FROM branches WHERE id = ?", (number,)).fetchone()
    return str(row[0]) if row else ""


def gaps(ranges: Iterable[Range], *, first: int = 1) -> Iterator[Range]:
    """Yield the ranges from a number on that ascending ranges leave out."""
    for begin, last in ranges:
        if begin > first:
            yield first, begin - 1
        first = last + 1
