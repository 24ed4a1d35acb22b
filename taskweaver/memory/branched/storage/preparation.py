"""Preparation of a memory file when it is opened: its tables, its index, its log."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from taskweaver.memory.branched.errors import StoreUnwritable, is_of_the_system
from taskweaver.memory.branched.storage import schema
from taskweaver.memory.branched.storage.connections import finish, transaction
from taskweaver.memory.branched.storage.schema_check import require_own_schema


def prepare(connection: sqlite3.Connection, path: Path, *, synchronous: str, use_fts: str) -> bool:
    """Bring a file to today's tables.

    Args:
        connection: Open on the file.
        path: The file.
        synchronous: SQLite's setting for how far a commit waits for the disk.
        use_fts: ``auto``, ``on`` or ``off``.

    Returns:
        Whether a full-text index is used.

    Raises:
        StoreTooNew: If a newer version wrote the file.
        StoreCorrupt: If it is another application's, or has a changed schema.
        StoreUnwritable: If `use_fts` is ``on`` and SQLite lacks FTS5.
        sqlite3.Error: If the file is damaged, or held by another process.
    """
    connection.execute("BEGIN")  # another process may bring it to today's tables meanwhile
    try:
        require_own_schema(connection, path)
    finally:
        finish(connection)
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    is_current = schema.is_current(connection, path)
    _use_log(connection)
    if not is_current:
        with transaction(connection):
            schema.migrate(connection, path)
        require_own_schema(connection, path)
    return _prepare_search(connection, use_fts)


def _prepare_search(connection: sqlite3.Connection, use_fts: str) -> bool:
    """Make the full-text index if it is missing; return whether it is used."""
    if schema.has_search(connection):
        return use_fts != "off"
    if use_fts == "off":
        return False
    with transaction(connection):
        has_search = schema.add_search(connection)
    if use_fts == "on" and not has_search:
        raise StoreUnwritable("memory.use_fts is `on`, and this SQLite has no FTS5.")
    return has_search


def _use_log(connection: sqlite3.Connection) -> None:
    """Keep a write-ahead log, so that readers and writers do not wait for each other.

    A backup is made without one. Where it cannot be had, because the file is read-only or another
    process reads it without one, the file is used without one too.
    """
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if not is_of_the_system(error):
            raise
