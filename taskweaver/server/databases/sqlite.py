"""A database of the server in one SQLite file.

A transaction is in the write-ahead log when it ends, and so survives the end of the process. The
log is flushed to the disk apart from that (`flush`), where no lock is held: so the event loop can
change a database without waiting for the disk, and one flush serves all who wait.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from taskweaver.server.databases.statements import AlreadyThere, Row, RunStatement, StatementOutcome
from taskweaver.server.errors import RequestRefused, ServerError
from taskweaver.utils.sqlite_files import READ_ERRORS, open_private

# As SQLite does: the length of a file and its content are flushed, not its times.
_flush_file = getattr(os, "fdatasync", os.fsync)


class SqliteDatabase:
    """A database in a file of its own.

    Attributes:
        threads: None: its statements take no longer than a change of threads.
    """

    threads = None

    def __init__(self, path: Path, subject: str, migrations: Sequence[str]) -> None:
        """Open the file; make it, for its owner alone, if there is none.

        Args:
            path: The file.
            subject: Subject of the errors: the content, such as ``The accounts``.
            migrations: Statements that lead from each version of the schema to the next.

        Raises:
            ServerError: If it cannot be used, or is of a newer version.
        """
        self._name = f"{subject} in {path}"
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._changes = self._flushed = 0
        self._unflushed: OSError | None = None
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._connection = open_private(path)
        try:
            with self._explained():
                self._connection.execute("PRAGMA foreign_keys = ON")
                with self._connection:
                    self._migrate(migrations)
                self._connection.isolation_level = None  # `changing` begins and ends transactions
                self._log = self._opened_log(path)
        except BaseException:
            self._connection.close()
            raise

    def _opened_log(self, path: Path) -> int | None:
        """Open the write-ahead log for `flush`; None where SQLite can have none and flushes itself.

        SQLite locks other files than this one, so that to close it frees no lock. It stays the same
        file for as long as the database is open.
        """
        (mode,) = self._connection.execute("PRAGMA journal_mode").fetchone()
        if mode != "wal":
            return None
        log = path.resolve().with_name(f"{path.resolve().name}-wal")
        descriptor = os.open(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        # SQLite still flushes the log before it copies it into the database, and that afterwards.
        self._connection.execute("PRAGMA synchronous = NORMAL")
        return descriptor

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
        """Close the file; safe to call again."""
        with self._flushing, self._lock:
            if self._log is not None:
                with suppress(OSError):  # SQLite flushes it too, unless others have the file open
                    _flush_file(self._log)
                os.close(self._log)
            self._log, self._flushed = None, self._changes
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
        *,
        is_flushed: bool = True,
    ) -> Iterator[RunStatement]:
        """Begin a transaction."""
        with self._explained(), self._lock:
            self._require_flushed()
            before = self._connection.total_changes
            self._run("BEGIN IMMEDIATE")
            try:
                yield self._run
                self._run("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._run("ROLLBACK")
            self._changes += self._connection.total_changes != before
        if is_flushed:
            self.flusher()()

    def flusher(self) -> Callable[[], None]:
        """Return a function that waits until every transaction that has ended is on disk.

        Threads that wait share one flush.
        """
        wanted = self._changes

        def flush() -> None:
            with self._explained(), self._flushing:
                self._require_flushed()
                if self._flushed < wanted:
                    reached = self._changes
                    self._flush()
                    self._flushed = reached

        return flush

    def _flush(self) -> None:
        if self._log is None:
            return
        try:
            _flush_file(self._log)
        except OSError as error:
            self._unflushed = error
            raise

    def _require_flushed(self) -> None:
        """Refuse after a flush that failed: the system may have dropped what it could not write."""
        if (error := self._unflushed) is not None:
            raise OSError(error.errno, f"{error.strerror}; start the server again")

    def _run(self, sql: str, *values: object) -> StatementOutcome:
        cursor = self._connection.execute(sql, values)
        return StatementOutcome(cursor.fetchall(), cursor.rowcount)
