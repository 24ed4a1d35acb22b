"""Tables that are values of cells, kept for the program that asked."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

TABLE_CHARS = 4 << 20
"""Longest table, as text; longer ones lose rows at their end."""
_MOST_TABLES, _MOST_CHARS = 64, 64 << 20
"""Number and size of the tables that wait to be taken."""


@dataclass(frozen=True, slots=True)
class CellTable:
    """A table that a kernel reported, and that code in the kernel can forge.

    Attributes:
        exec_id: Id of the cell whose value it is.
        text: The table as JSON; see `inkernel.cell.report`.
    """

    exec_id: str
    text: str


class CellTables:
    """The newest tables of an application's cells, for any thread.

    Attributes:
        is_kept: Whether kernels report tables. Off by default: nothing is encoded then.
    """

    def __init__(self) -> None:
        self.is_kept = False
        self._lock = threading.Lock()
        self._tables: deque[CellTable] = deque(maxlen=_MOST_TABLES)

    @property
    def limit_chars(self) -> int:
        """Longest text of a table that a kernel reports, or 0 for no table."""
        return TABLE_CHARS if self.is_kept else 0

    def add(self, exec_id: str, text: object) -> None:
        """Keep the table that a kernel reports for a cell, and drop the oldest above the limit.

        Args:
            exec_id: Id of the cell.
            text: What the kernel reports; anything but a text of a bearable length is left out.
        """
        if self.is_kept and isinstance(text, str) and 0 < len(text) <= TABLE_CHARS:
            with self._lock:
                self._tables.append(CellTable(exec_id, text))
                while sum(len(table.text) for table in self._tables) > _MOST_CHARS:
                    self._tables.popleft()

    def take(self, exec_ids: Collection[str]) -> list[CellTable]:
        """Return, once, the tables of some cells, in the order of arrival."""
        with self._lock:
            found = [table for table in self._tables if table.exec_id in exec_ids]
            rest = [table for table in self._tables if table.exec_id not in exec_ids]
            self._tables = deque(rest, _MOST_TABLES)
        return found
