"""One SQLite file: the turns of the writers, and the snapshots of the readers.

Writers queue up, and whoever holds the lock commits for all that wait: one transaction and one
sync for many writers, and no thread of its own to hand work to or to leave behind (see
docs/decisions/0006-branched-memory.md). Each command has a savepoint, so one that fails takes
nothing of the others with it. `Database.write` returns after the commit. Readers have a
connection per thread and see the newest commit. Several processes may open the same file.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast

from taskweaver.memory.branched.errors import (
    BranchedMemoryError,
    StoreClosed,
    StoreCorrupt,
    StoreUnwritable,
    is_of_the_system,
    translated,
)
from taskweaver.memory.branched.storage import schema
from taskweaver.memory.branched.storage.connections import (
    Known,
    Readers,
    Writer,
    connect,
    connect_to_write,
    finish,
    transaction,
)
from taskweaver.memory.branched.storage.soundness import UNEXPECTED, problems, require_own_schema
from taskweaver.utils.files import create_private
from taskweaver.utils.sqlite_files import UnsafeFile, require_plain

__all__ = ["Database", "Writer"]

R = TypeVar("R")

_MOST_AT_ONCE = 256
_INDEX_WAIT_S = 0.5


@dataclass
class _Command(Generic[R]):
    """A waiting write."""

    action: Callable[[Writer], R]
    is_done: bool = False
    result: R | None = None
    error: BaseException | None = None

    def run(self, writer: Writer) -> None:
        """Run beside further commands, which keep their writes if this command fails."""
        connection = writer.connection
        last = writer.last
        connection.execute("SAVEPOINT command")
        try:
            self.result = self.action(writer)
        except Exception as error:
            self.error = error
            writer.known.forget()
            if not connection.in_transaction:  # SQLite itself rolled the transaction back
                raise
            connection.execute("ROLLBACK TO command")
            writer.last = last
        connection.execute("RELEASE command")


class _Inside(threading.local):
    """The transaction that takes what this thread writes, and the actions after the commit."""

    writer: Writer | None = None
    later: list[Callable[[], object]]


def _unmade(path: Path, error: OSError) -> str:
    """Return why a file cannot be made, and the remedy."""
    why = error.strerror or str(error)
    if isinstance(error, FileExistsError | NotADirectoryError):
        above = next(folder for folder in path.parents if folder.exists())
        why = f"{above} is a file and no folder"
    return f"{path} cannot be made: {why}. Choose a file in a folder that may be written."


class Database:
    """The file of a memory, to be closed.

    Attributes:
        path: The file.
        has_search: Whether it has a full-text index.
        clock: Returns the time, in seconds since 1970.
        on_commit: Receives the first and last number that a commit gave out; None for nothing.
        on_undone: Called when a write was undone; None for nothing.
    """

    def __init__(
        self,
        path: Path,
        *,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        use_fts: Literal["auto", "on", "off"] = "auto",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open a file, and make or migrate the tables.

        Raises:
            StoreTooNew: If a newer version wrote it.
            StoreCorrupt: If it is damaged, another application's, or has a changed schema.
            StoreUnwritable: If it cannot be written, or `use_fts` is ``on`` and SQLite lacks FTS5.
            StoreBusy: If another process holds it for too long.
        """
        self.path = path = path.absolute()  # the process may change its folder
        self.clock = clock
        self.on_commit: Callable[[int, int], None] | None = None
        self.on_undone: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self._waiting: deque[_Command[Any]] = deque()
        self._inside = _Inside()
        self._known = Known()
        self._synchronous = synchronous
        self._writes: sqlite3.Connection | None = None
        self._is_closed = False
        self._process = os.getpid()
        with self.guarded():
            try:
                if path.is_dir():
                    raise StoreUnwritable(f"{path} is a folder; choose a file in it.")
                path.parent.mkdir(parents=True, exist_ok=True)
                create_private(path)
                require_plain(path)
            except UnsafeFile as error:
                raise StoreCorrupt(f"{error}: it is not opened.") from error
            except OSError as error:
                raise StoreUnwritable(_unmade(path, error)) from error
            opened = connect(self.path)
            try:
                self.has_search = prepare(opened, path, synchronous=synchronous, use_fts=use_fts)
            except BaseException:
                opened.close()
                raise
        self._readers = Readers(path, opened)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Raise every error that damage of the file leads to as `StoreCorrupt`.

        Values of a damaged file raise errors of any kind where they are used. An unexpected one is
        damage if a check of the file finds some, and is raised as it is otherwise.
        """
        try:
            try:
                yield
            except Exception:
                with translated(self.path):
                    raise
        except BranchedMemoryError:
            raise
        except UNEXPECTED as error:
            with translated(self.path), closing(connect(self.path)) as connection:
                connection.execute("PRAGMA query_only = ON")
                found = problems(connection)
            if not found:
                raise
            raise StoreCorrupt(
                f"{self.path} is damaged: {found[0]}. Restore a backup;"
                " `taskweaver sessions repair` saves the readable part of a session."
            ) from error

    @property
    def _writing(self) -> sqlite3.Connection:
        """The connection for writing, for the holder of the lock."""
        if self._writes is None:
            self._writes = connect_to_write(self.path, self._synchronous)
        return self._writes

    @property
    def is_inherited(self) -> bool:
        """Whether the file was opened by the process that this one was forked from."""
        return os.getpid() != self._process

    def require_own(self) -> None:
        """Refuse to go on with the connections of the process that this one was forked from.

        SQLite's locks are not inherited, so what is written with them can be lost, and a lock of a
        thread that was writing is never released here.

        Raises:
            StoreClosed: If this process was forked since the file was opened.
        """
        if os.getpid() != self._process:
            raise StoreClosed(
                f"The memory {self.path} was opened before this process was forked; open it here."
            )

    def write(self, action: Callable[[Writer], R]) -> R:
        """Run an action in a write transaction, and return the result after the commit.

        The action may be run once only, in the calling thread or another writer's, and must not
        call `write` itself. Inside of `together` it is run at once.

        Raises:
            StoreBusy: If another process holds the file for too long.
            StoreUnwritable: If the disk is full or the file may not be written.
            StoreClosed: If the memory was closed.
            BranchedMemoryError: Whatever the action raises; it wrote nothing then.
        """
        self.require_own()
        if self._inside.writer is not None:
            return action(self._inside.writer)
        command = _Command(action)
        self._waiting.append(command)
        with self._lock:
            while not command.is_done:
                self._commit_waiting()
        if command.error is not None:
            with self.guarded():
                raise command.error
        return cast("R", command.result)

    def together(self, action: Callable[[], R]) -> R:
        """Run an action whose writes are one transaction, and return the result after the commit.

        If it raises, nothing of it is written. It is run as `write` runs actions, and others wait
        meanwhile; what it reads is the state before it.

        Raises:
            As `write`.
        """
        if self._inside.writer is not None:
            return action()
        later: list[Callable[[], object]] = []

        def act(writer: Writer) -> R:
            self._inside.writer, self._inside.later = writer, later
            try:
                return action()
            finally:
                self._inside.writer = None

        result = self.write(act)
        for follow in later:
            follow()
        return result

    @property
    def is_in_together(self) -> bool:
        """Whether this thread runs the action of `together`, while the file is locked."""
        return self._inside.writer is not None

    def after_commit(self, action: Callable[[], object]) -> None:
        """Run an action that needs the writes so far committed: now, or when `together` ends."""
        if self._inside.writer is None:
            action()
        else:
            self._inside.later.append(action)

    def _commit_waiting(self) -> None:
        """Commit the waiting commands. Whatever goes wrong, each command gets the error."""
        commands = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_AT_ONCE))]
        try:
            if self._is_closed:
                raise StoreClosed(f"The memory {self.path} was closed.")
            with transaction(self._writing):
                self._known.check(self._writing)
                writer = Writer(self._writing, self.clock(), self._known)
                if len(commands) == 1:  # alone, it needs no savepoint: all goes if it fails
                    commands[0].result = commands[0].action(writer)
                else:
                    for command in commands:
                        command.run(writer)
                writer.set_clock()
            if self.on_commit is not None and writer.last >= writer.first > 0:
                self.on_commit(writer.first, writer.last)
        except Exception as error:  # noqa: BLE001 - every command that waits is told
            for command in commands:
                command.error = command.error or error
        except BaseException:
            for command in commands:
                command.error = command.error or StoreUnwritable(
                    "The write was interrupted, and nothing of it was kept."
                )
            raise
        finally:
            self._settle(commands)

    def _settle(self, commands: list[_Command[Any]]) -> None:
        """End the commands, and forget what undone commands had found."""
        if any(command.error is not None for command in commands):
            self._known.forget()
            if self.on_undone is not None:
                self.on_undone()
        for command in commands:
            command.is_done = True

    def alone(self, action: Callable[[sqlite3.Connection], R]) -> R:
        """Run an action on the connection for writing, with no transaction and no writer meanwhile.

        Raises:
            StoreBusy: If another process holds the file for too long.
            StoreUnwritable: If the disk is full or the file may not be written.
            StoreClosed: If the memory was closed.
        """
        self.require_own()
        with self._lock, self.guarded():
            if self._is_closed:
                raise StoreClosed(f"The memory {self.path} was closed.")
            return action(self._writing)

    def write_index(self, action: Callable[[sqlite3.Connection], R]) -> R:
        """Run an action of a search in a write transaction. Raises as `alone`, but soon.

        A search does not wait for the long write of another process: the index can be older.
        """

        def act(connection: sqlite3.Connection) -> R:
            with transaction(connection, _INDEX_WAIT_S):
                return action(connection)

        return self.alone(act)

    @property
    def reading(self) -> sqlite3.Connection:
        """This thread's connection for reading. Inside `snapshot` all reads see one state.

        Raises:
            StoreClosed: If the memory was closed.
        """
        self.require_own()
        return self._readers.connection

    def connect_reader(self) -> sqlite3.Connection:
        """Open a connection for reading that any thread may use, and that the caller closes.

        Raises:
            sqlite3.Error: If the file cannot be opened.
        """
        self.require_own()
        return self._readers.connect()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Read one state in several queries. Nested blocks see the outer one's."""
        with self.guarded():
            connection = self.reading
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                finish(connection)

    def now_seq(self, connection: sqlite3.Connection) -> int:
        """Return the newest sequence number a connection sees."""
        return int(connection.execute("SELECT seq FROM clock").fetchone()[0])

    def backup(self, target: Path) -> None:
        """Copy the file in the present state, while writers go on.

        Raises:
            StoreUnwritable: If `target` cannot be written.
        """
        with replacing(target) as partial:
            create_private(partial)
            with translated(target), closing(sqlite3.connect(partial)) as copy:
                self.reading.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")

    def write_through(self) -> None:
        """Move the written pages from the log into the file, to be moved without the log.

        Raises:
            StoreUnwritable: If the disk is full, or another process reads the file.
        """
        with self._lock, self.guarded(), closing(connect(self.path)) as connection:
            row = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if row[0]:
                raise StoreUnwritable(f"{self.path} is not complete: another process reads it.")

    def close(self) -> None:
        """Finish the present write and close every connection. Safe to call again.

        In a process that was forked since the file was opened it does nothing.
        """
        if self.is_inherited:
            return
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._readers.close()
            if self._writes is not None:
                self._writes.close()


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield the place of a draft, which takes the place of a file once the block ends.

    Raises:
        StoreUnwritable: If the file cannot be written; no draft is left behind.
    """
    partial = target.with_name(target.name + ".partial")
    try:
        yield partial
        partial.replace(target)
    except OSError as error:
        raise StoreUnwritable(f"{target} cannot be written: {error}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


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
    try:
        # A write-ahead log keeps readers and writers from waiting for each other. A backup is made
        # without one. Where it cannot be had, because the file is read-only or another process
        # reads it without one, the file is used without one too.
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if not is_of_the_system(error):
            raise
    if not is_current:
        with transaction(connection):
            schema.migrate(connection, path)
        require_own_schema(connection, path)
    return _prepare_search(connection, use_fts)


def _prepare_search(connection: sqlite3.Connection, use_fts: str) -> bool:
    """Make a missing full-text index, and return whether the index is used."""
    if use_fts == "off":
        return False
    if all(
        schema.has_search(connection, name) for name in (schema.RECORDS, schema.EVENTS, "vectors")
    ):
        return True
    with transaction(connection):
        has_search = schema.add_search(connection)
    if use_fts == "on" and not has_search:
        raise StoreUnwritable("memory.use_fts is `on`, and this SQLite has no FTS5.")
    return has_search
