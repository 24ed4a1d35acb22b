"""`memory_primitive.jsonl`: one JSON line for each row of core, recall and archival memory.

A commit only notes the sequence numbers it gave out; the rows are read back from the file when the
lines are written, so that a row that was rolled back is in no log.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from typing import Any

from taskweaver.memory.branched.logs.log_files import LogFolder
from taskweaver.memory.branched.logs.log_lines import display_phase, encoded, head, masked_row
from taskweaver.memory.branched.storage.database import Database

ROWS_FILE = "memory_primitive.jsonl"
_OPS = {
    "core_kv": ("set_core", "core"),
    "events": ("write_event", "recall"),
    "archival": ("write_archival", "archival"),
    "exclusions": ("hide_event", "recall"),
    "digests": ("write_digest", "recall"),
}
_JSON_COLUMNS = ("tags", "data", "meta", "kinds")
_DERIVED = ("text_hash", "place")
_AT_ONCE = 256
"""Sequence numbers whose lines are written with one call."""


class RowLog:
    """Writes the rows of a memory to its log. One thread at a time may flush or close it."""

    def __init__(self, database: Database, files: LogFolder, *, run_id: str = "") -> None:
        """Begin with the next commit of a memory; every line names the run.

        Raises:
            StoreCorrupt: If the file cannot be read.
        """
        self._database = database
        self._files = files
        self._run_id = run_id or None
        self._lock = threading.Lock()
        self._ranges: list[tuple[int, int]] = []
        with database.guarded():
            # A thread's own connection may be in a snapshot, which lacks the newest rows.
            self._connection = database.connect_reader()
            self._schema = self._read_schema()
        database.on_commit = self._committed

    def _committed(self, first: int, last: int) -> None:
        with self._lock:  # called by the thread that commits, while another one flushes
            if self._ranges and self._ranges[-1][1] == first - 1:
                first = self._ranges.pop()[0]
            self._ranges.append((first, last))

    def flush(self) -> None:
        """Write the lines of the commits so far, as far as possible; never raises."""
        with self._lock:
            ranges, self._ranges = self._ranges, []
        for first, last in ranges:
            for low in range(first, last + 1, _AT_ONCE):
                self._write(low, min(last, low + _AT_ONCE - 1))

    def has_lost_rows(self) -> bool:
        """Return whether rows may have been erased since the last call, by any process."""
        try:
            # An erasure removes free pages, which changes the number of the schema.
            former, self._schema = self._schema, self._read_schema()
        except sqlite3.Error as error:
            self._files.lose(ROWS_FILE, 0, error)
            return True
        return former != self._schema

    def close(self) -> None:
        """End the log; its rows were flushed."""
        self._connection.close()

    def _read_schema(self) -> int:
        return int(self._connection.execute("PRAGMA schema_version").fetchone()[0])

    def _write(self, first: int, last: int) -> None:
        try:
            lines = sorted(self._lines(first, last))
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as error:
            self._files.lose(ROWS_FILE, last - first + 1, error)
            return
        if lines:
            self._files.append(ROWS_FILE, [text for _, text in lines])

    def _lines(self, first: int, last: int) -> Iterator[tuple[int, str]]:
        """Yield the number and the line of each row of a range, a table after the other."""
        for table in _OPS:
            cursor = self._connection.execute(
                "SELECT b.name AS branch, r.* FROM branches AS b JOIN"
                f" {table} AS r ON r.branch_id = b.id WHERE r.seq BETWEEN ? AND ?",
                (first, last),
            )
            names = [column[0] for column in cursor.description]
            for values in cursor:
                row = dict(zip(names, values, strict=True))
                yield row["seq"], self._line(table, row)

    def _line(self, table: str, row: dict[str, Any]) -> str:
        op, memory_type = _OPS[table]
        branch, seq = row.pop("branch"), row.pop("seq")
        if table == "core_kv" and row["value"] is None:
            op = "core_delete"
        elif table == "archival" and row.get("is_deleted"):
            op = "delete_archival"
        elif table == "archival" and row["record"] != seq:
            op = "update_archival"
        row = {
            name: json.loads(value) if name in _JSON_COLUMNS else value
            for name, value in row.items()
            if name not in _DERIVED
        }
        ts, data = row.get("created_at"), row.get("data")
        line = head(
            op, "primitive", memory_type, ts=ts or None, branch_id=branch, run_id=self._run_id
        )
        if isinstance(data, dict):
            phase = data.get("phase")
            line["node_id"] = data.get("node_id")
            line["phase"] = display_phase(phase) if isinstance(phase, str) else None
        line |= {"file": self._database.path.name, "seq": seq, "table": table}
        return encoded({**line, "row": masked_row(row)})
