"""A database of the server in one SQLite file."""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from taskweaver.server.databases.statements import AlreadyThere, Row, RunStatement, StatementOutcome
from taskweaver.server.errors import RequestRefused, ServerError
from taskweaver.utils.sqlite_files import READ_ERRORS, open_private

_THREADS = 2

# For each version of a schema the statements that lead to it.
SQLITE_ACCOUNTS = (
    """
    CREATE TABLE users (
      name TEXT PRIMARY KEY, role TEXT NOT NULL, quota TEXT NOT NULL, created_at TEXT NOT NULL,
      token_id TEXT NOT NULL UNIQUE, token_hash BLOB NOT NULL
    ) STRICT;
    CREATE TABLE spending (
      user TEXT PRIMARY KEY REFERENCES users ON DELETE CASCADE, cost REAL NOT NULL,
      tokens INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE audit (
      id INTEGER PRIMARY KEY, at TEXT NOT NULL, user TEXT NOT NULL, address TEXT NOT NULL,
      action TEXT NOT NULL, target TEXT NOT NULL, outcome TEXT NOT NULL, request_id TEXT NOT NULL
    ) STRICT
    """,
)
"""Users, spending and the audit log."""

SQLITE_INDEX = (
    # Files of the first version have no number of their version.
    """
    CREATE TABLE IF NOT EXISTS sessions (
      session TEXT PRIMARY KEY, title TEXT NOT NULL, created_at TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS messages (
      id TEXT PRIMARY KEY, session TEXT NOT NULL, branch TEXT NOT NULL, kind TEXT NOT NULL,
      text TEXT NOT NULL, state TEXT NOT NULL, round_id TEXT NOT NULL, answer TEXT NOT NULL,
      tokens INTEGER NOT NULL, cost REAL, created_at TEXT NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS messages_of_sessions ON messages (session);
    CREATE TABLE IF NOT EXISTS changes (
      number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, data TEXT NOT NULL
    ) STRICT
    """,
    """
    ALTER TABLE sessions ADD COLUMN user TEXT NOT NULL DEFAULT '';
    ALTER TABLE messages ADD COLUMN user TEXT NOT NULL DEFAULT '';
    ALTER TABLE messages ADD COLUMN server TEXT NOT NULL DEFAULT '';
    ALTER TABLE changes ADD COLUMN user TEXT NOT NULL DEFAULT ''
    """,
)
"""The index of one user, whose name is empty in it."""


class SqliteDatabase:
    """A database in an own file.

    Attributes:
        threads: Threads for calls from the event loop: a commit waits for the disk.
    """

    def __init__(self, path: Path, subject: str, migrations: Sequence[str]) -> None:
        """Open the file. A new file is for the owner alone.

        Args:
            path: The file.
            subject: Subject of the errors: the content, such as ``The accounts``.
            migrations: Statements that lead from each version of the schema to the next.

        Raises:
            ServerError: If it cannot be used, or is of a newer version.
        """
        self._name = f"{subject} in {path}"
        self._lock = threading.Lock()
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="database")
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._connection = open_private(path)
        try:
            with self._explained():
                self._connection.execute("PRAGMA foreign_keys = ON")
                with self._connection:
                    self._migrate(migrations)
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.isolation_level = None  # `changing` begins and ends transactions
        except BaseException:
            self._connection.close()
            raise

    def _migrate(self, migrations: Sequence[str]) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")  # another process may be about to do the same
        (version,) = execute("PRAGMA user_version").fetchone()
        if version > len(migrations):
            problem = f"{self._name} cannot be used: the file is of a newer version."
            raise ServerError(problem, "Use that version of TaskWeaver.")
        for script in migrations[version:]:
            for statement in script.split(";"):
                execute(statement)
        execute(f"PRAGMA user_version = {len(migrations)}")

    def close(self) -> None:
        """Close the file. Safe to call again."""
        self.threads.shutdown()
        with self._lock:
            self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise AlreadyThere(f"{self._name} cannot be changed: {error}.") from error
        except (*READ_ERRORS, OSError) as error:
            if "full" in str(error) or getattr(error, "errno", None) == errno.ENOSPC:
                raise RequestRefused(507, "disk-full", "There is no room on the disk.") from error
            raise ServerError(f"{self._name} cannot be used: {error}.") from error

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Return the rows of a query."""
        with self._explained(), self._lock:
            return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def changing(
        self,
        user: str = "",  # noqa: ARG002 - the file is of one user, or of all
    ) -> Iterator[RunStatement]:
        """Begin a transaction."""
        with self._explained(), self._lock:
            self._run("BEGIN IMMEDIATE")
            try:
                yield self._run
                self._run("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._run("ROLLBACK")

    def _run(self, sql: str, *values: object) -> StatementOutcome:
        cursor = self._connection.execute(sql, values)
        return StatementOutcome(cursor.fetchall(), cursor.rowcount)
