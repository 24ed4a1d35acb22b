"""Lists of a session's working files at the ends of rounds: names, sizes and times, no content."""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path

from taskweaver.session.errors import SessionClosed, SessionError
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.sqlite_files import READ_ERRORS, UnsafeFile, open_private, remove_database

LISTS_FILE = "files.sqlite"
"""Name of the file in a session's folder."""

MOST_FILES = 10_000
"""Most files of a list; the others are left out."""

_MOST_BYTES = 16 << 20
_MOST_LIST_BYTES = 8 << 20
_SCHEMA = """
CREATE TABLE IF NOT EXISTS lists (
  number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, data BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS rounds (
  branch TEXT NOT NULL, round TEXT NOT NULL, list INTEGER NOT NULL, PRIMARY KEY (branch, round)
) STRICT;
"""

Listed = Mapping[str, tuple[int, int]]
"""Size in bytes and time of the last change in nanoseconds of each file, by path."""


def listed_files(folder: Folder) -> Listed:
    """Return the files of a working folder, at most `MOST_FILES`."""
    found = islice(folder.files(), MOST_FILES)
    return {path: (facts.st_size, facts.st_mtime_ns) for path, facts in found}


class FileLists:
    """Lists of files by branch and round, the newest ones kept. Close it. Thread-safe.

    The file is opened with the first list; a damaged one is replaced.
    """

    def __init__(self, folder: Path) -> None:
        """Prepare the lists of the session in a folder."""
        self._path = folder / LISTS_FILE
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None
        self._is_closed = False

    def keep(self, branch: str, round_id: str, files: Listed) -> None:
        """Keep a list as that of the end of a round.

        Raises:
            SessionError: If it cannot be written.
        """
        data = json.dumps(files, separators=(",", ":"), sort_keys=True).encode()
        digest = sha256(data).digest()
        with self._lock:
            try:
                with self._database() as database:
                    _add(database, branch, round_id, digest, zlib.compress(data))
            except (*READ_ERRORS, OSError) as error:
                raise SessionError(f"{self._path} cannot be written: {error}.") from error

    def find(self, branches: Sequence[str], round_id: str) -> Listed | None:
        """Return the list of the end of a round, as the first of some branches kept it.

        Raises:
            SessionError: If it cannot be read.
        """
        with self._lock:
            if self._file is None and not self._path.exists():
                return None
            try:
                database = self._database()
                for branch in branches:
                    row = database.execute(
                        "SELECT data FROM lists JOIN rounds ON list = number"
                        " WHERE branch = ? AND round = ?",
                        (branch, round_id),
                    ).fetchone()
                    if row is not None:
                        return _read(row[0])
            except (*READ_ERRORS, OSError, ValueError, zlib.error) as error:
                raise SessionError(f"{self._path} cannot be read: {error}.") from error
        return None

    def _database(self) -> sqlite3.Connection:
        if self._is_closed:
            raise SessionClosed("The session was stopped.")
        if self._file is None:
            try:
                self._file = open_private(self._path, _SCHEMA)
            except sqlite3.OperationalError:  # no room, or no right: it may be sound
                raise
            except (*READ_ERRORS, UnsafeFile):
                remove_database(self._path)
                self._file = open_private(self._path, _SCHEMA)
        return self._file

    def close(self) -> None:
        """Close the file. Safe to call again."""
        with self._lock:
            self._is_closed = True
            if self._file is not None:
                self._file.close()
                self._file = None


def _add(
    database: sqlite3.Connection, branch: str, round_id: str, digest: bytes, data: bytes
) -> None:
    """Add the list of a round, and remove the oldest lists where they take too much room."""
    database.execute("INSERT OR IGNORE INTO lists (digest, data) VALUES (?, ?)", (digest, data))
    database.execute(
        "INSERT OR REPLACE INTO rounds SELECT ?, ?, number FROM lists WHERE digest = ?",
        (branch, round_id, digest),
    )
    used = int(database.execute("SELECT total(length(data)) FROM lists").fetchone()[0])
    while used > _MOST_BYTES:
        number, size = database.execute(
            "SELECT number, length(data) FROM lists JOIN rounds ON list = number"
            " GROUP BY number ORDER BY max(rounds.rowid) LIMIT 1"
        ).fetchone()
        database.execute("DELETE FROM rounds WHERE list = ?", (number,))
        database.execute("DELETE FROM lists WHERE number = ?", (number,))
        used -= size


def _read(data: bytes) -> Listed:
    """Return a list from its form in the file. Raises ValueError or zlib.error for another."""
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(data, _MOST_LIST_BYTES)
    found = json.loads(content)
    if not unpacker.eof or not isinstance(found, dict):
        raise ValueError("a list is malformed")
    return {str(path): (int(size), int(at)) for path, (size, at) in found.items()}
