"""Reading of the rows that a damaged file still has.

SQLite reads a table through pages; a bad one ends a query although the pages behind it are whole.
So each table is read forwards, backwards, and then in small ranges of its key down to single
rows, which skips bad pages at the cost of a few lookups.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from taskweaver.utils.sqlite_files import READ_ERRORS, harden

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


class DamagedFile:
    """A database that may be damaged; it is only read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Prepare a connection, on which nothing else runs from now on."""
        harden(connection)
        connection.execute("PRAGMA query_only = ON")
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        self.connection = connection
        self._steps = 0
        connection.set_progress_handler(self._count, _STEPS_AT_ONCE)

    def _count(self) -> bool:
        self._steps += _STEPS_AT_ONCE
        return self._steps > _MOST_STEPS

    def read(self, table: str, columns: Sequence[str], *, highest: int = 0) -> TableRows:
        """Return the rows of a table whose first column is its key.

        Keys are looked for up to `highest`, if the table itself does not say.
        """
        found = TableRows()
        key = columns[0]
        select = f"SELECT {', '.join(columns)} FROM {table}"
        found.is_whole = self._scan(found, columns, f"{select} ORDER BY {key}")
        listed = self._listed(table, key)
        if not found.is_whole or listed - found.rows.keys():
            self._scan(found, columns, f"{select} ORDER BY {key} DESC")
            self._search(found, columns, select, listed, highest)
        found.lost = len(listed - found.rows.keys())
        found.is_whole = found.is_whole and not found.lost
        return found

    def _scan(
        self, found: TableRows, columns: Sequence[str], query: str, values: Iterable[object] = ()
    ) -> bool:
        """Add the rows of a query; return whether it ended without an error."""
        try:
            for count, row in enumerate(self.connection.execute(query, tuple(values))):
                if count > _MOST_ROWS:
                    return False
                found.rows.setdefault(row[0], dict(zip(columns, row, strict=True)))
        except READ_ERRORS:
            return False
        return True

    def _listed(self, table: str, key: str) -> set[int]:
        """Return the keys that the indexes of a table name, as far as they can be read."""
        found: set[int] = set()
        try:
            indexes = [row[1] for row in self.connection.execute(f"PRAGMA index_list({table})")]
        except READ_ERRORS:
            return found
        for index in indexes:
            try:
                query = f"SELECT {key} FROM {table} INDEXED BY {index}"
                found.update(row[0] for row in self.connection.execute(query))
            except READ_ERRORS:
                continue  # a partial index, or a damaged one
        return found

    def _search(
        self,
        found: TableRows,
        columns: Sequence[str],
        select: str,
        listed: set[int],
        highest: int,
    ) -> None:
        """Add rows by ranges of keys, and by single keys where a range cannot be read."""
        key = columns[0]
        between = f"{select} WHERE {key} BETWEEN ? AND ? ORDER BY {key}"
        end = min(max([highest, *found.rows, *listed]), _MOST_KEYS)
        for low in range(1, end + 1, _CHUNK):
            high = min(end, low + _CHUNK - 1)
            if not self._scan(found, columns, between, (low, high)):
                for number in range(low, high + 1):
                    if number not in found.rows:
                        self._scan(found, columns, between, (number, number))
        for value in [*listed]:
            if value not in found.rows:
                self._scan(found, columns, f"{select} WHERE {key} = ?", (value,))
