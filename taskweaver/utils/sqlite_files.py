"""Precautions for SQLite files that another person may have written.

A database file is a program in part: views, triggers, defaults and generated columns run when a
table is read or written. The files beside it act too: SQLite follows a link at the write-ahead
log, and deletes the file whose name stands at the end of a rollback journal.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Mapping
from pathlib import Path

from taskweaver.utils.files import create_private

SIDE_FILES = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database."""
READ_ERRORS = (sqlite3.Error, UnicodeDecodeError, OverflowError)
"""Raised when a damaged file is read; SQLite's messages, too, may hold bytes that are no text."""
_DEFENSIVE = 1010  # SQLITE_DBCONFIG_DEFENSIVE; `sqlite3` names it from Python 3.12 on
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")


class UnsafeFile(OSError):
    """A file that SQLite must not be given."""


def quoted_name(name: str) -> str:
    """Return the name of a table or a column as written in SQL."""
    return '"' + name.replace('"', '""') + '"'


def column_names(connection: sqlite3.Connection, table: str) -> list[str]:
    """Return the names of the columns that hold values, and not of computed columns."""
    rows = connection.execute(f"PRAGMA table_info({quoted_name(table)})")
    return [row[1] for row in rows]


def insert_row(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> int:
    """Add a row to a table, and return the row's number."""
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    cursor = connection.execute(
        f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values())
    )
    return int(cursor.lastrowid or 0)


def remove_database(path: Path) -> None:
    """Delete a database with the files that SQLite keeps beside the database, if there are any.

    Raises:
        OSError: If one cannot be deleted.
    """
    for ending in ("", *SIDE_FILES):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def require_plain(path: Path) -> None:
    """Raise unless a database and the files beside the database are ordinary files, or missing.

    A link to the database itself is followed: the user may have named it.

    Raises:
        UnsafeFile: If one is a link, a pipe, a device or a folder, or if a journal names a file
            that SQLite would delete.
        OSError: If one cannot be looked at.
    """
    if path.exists() and not path.is_dir() and not stat.S_ISREG(path.stat().st_mode):
        raise UnsafeFile(f"{path} is no ordinary file")  # SQLite itself refuses a folder
    target = path.resolve()
    for ending in SIDE_FILES:
        beside = target.with_name(target.name + ending)
        if not os.path.lexists(beside):
            continue
        if not stat.S_ISREG(beside.lstat().st_mode):
            raise UnsafeFile(f"{beside} is a link or no ordinary file")
        if ending == "-journal" and _names_another_journal(beside):
            raise UnsafeFile(f"{beside} names another file, which SQLite would delete")


def _names_another_journal(journal: Path) -> bool:
    with journal.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_SUPER_JOURNAL)))
        return file.read() == _SUPER_JOURNAL


def open_private(path: Path, tables: str = "") -> sqlite3.Connection:
    """Open a database for all threads, with a write-ahead log, made for the owner if missing.

    A script makes the `tables` of a file whose last writes may be lost with the power.

    Raises:
        UnsafeFile, OSError: As `require_plain`, or if it cannot be made.
        sqlite3.Error: If it cannot be opened, or is no database.
    """
    require_plain(path)
    create_private(path)
    connection = sqlite3.connect(path, timeout=30.0, check_same_thread=False)
    try:
        harden(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        if tables:
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(tables)
    except BaseException:
        connection.close()
        raise
    return connection


def harden(connection: sqlite3.Connection) -> None:
    """Have SQLite distrust the schema of a file, and check the pages that are read.

    Functions with effects are then unavailable to views, triggers and expressions of the schema;
    from Python 3.12 on the schema and the pages of virtual tables cannot be written directly.
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    configure = getattr(connection, "setconfig", None)
    if configure is not None:
        configure(_DEFENSIVE, True)
