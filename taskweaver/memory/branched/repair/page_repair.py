"""Changes to a copy of a damaged file that let SQLite read the rest of it.

SQLite refuses the whole of a file that is shorter than its header says, or whose first pages, which
hold the schema, are damaged. The schema of a memory is known: its pages are those of an empty
memory, as long as both were made by the same steps. Rows that are then read are checked one by one.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from taskweaver.memory.branched.storage.database import Database

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
    """Write the pages that hold the schema of an empty memory over those of a file.

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
    """Return the pages of an empty memory that hold its schema, by number, and how many it has."""
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
