"""Erasure: a record, an event, a core key or a text leaves a memory for good.

The files beside the memory are cleaned first, then the rows in one transaction, then the free
pages and the write-ahead log, and then the files again, for lines that were added meanwhile. A
record, an event and a key are known by their rows, so those stay until the files are clean. An
erasure that was interrupted leaves a sound memory, and the same call finishes it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from taskweaver.memory.branched.erasure.erased_files import ErasedFiles, Untouched
from taskweaver.memory.branched.erasure.erased_rows import Target, erase_rows, needles_of
from taskweaver.memory.branched.erasure.needles import ERASED
from taskweaver.memory.branched.errors import BranchedMemoryError, InvalidUpdate
from taskweaver.memory.branched.storage.database import Writer
from taskweaver.memory.branched.tiers.tiers import Tiers
from taskweaver.memory.branched.types import FOREVER
from taskweaver.memory.branched.values import checked_text, name, paths, whole

_WAIT_FOR_WRITERS_MS, _WAIT_FOR_READERS_MS = 30_000, 1000
_LEAST_CHARS = 2


@dataclass(frozen=True, slots=True)
class Erasure:
    """Outcome of an erasure.

    Attributes:
        rows: Number of rows that were changed or removed, by table.
        files: Files beside the memory that were changed.
        untouched: Files that may still hold the text, with the reason.
        is_dry: Whether the text was only looked for.
    """

    rows: dict[str, int]
    files: tuple[str, ...]
    untouched: tuple[Untouched, ...]
    is_dry: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether no file is known to hold the text any more."""
        return not self.untouched


class _Rehearsal(Exception):
    """Ends the transaction of a dry run."""

    def __init__(self, rows: dict[str, int]) -> None:
        super().__init__()
        self.rows = rows


class Erasures:
    """Erases rows and texts of a memory, on all branches."""

    def __init__(self, tiers: Tiers, logs: Path) -> None:
        self._tiers = tiers
        self._database = tiers.database
        self._logs = logs

    def erase(
        self, target: Target, folders: Sequence[Path | str] = (), *, is_dry: bool = False
    ) -> Erasure:
        """Erase a target that `checked_target` made; see `BranchedMemory.erase`.

        Raises:
            InvalidUpdate: If the folders are malformed.
            StoreBusy, StoreUnwritable: If the file cannot be written.
        """
        self._database.require_own()
        config = self._tiers.config
        files = ErasedFiles(
            self._database.path,
            self._logs,
            paths("folders", folders),
            names=(config.final_memory_filename_md, config.final_memory_filename_json),
            is_dry=is_dry,
        )
        self._tiers.log.flush()
        with self._database.snapshot() as connection:
            needles = needles_of(connection, target)
        files.erase(needles)
        rows = self._rows(target, is_dry=is_dry)
        if not is_dry:
            self._tiers.log.flush()
            problem = self._compact()
            if problem:
                files.untouched[str(self._database.path)] = problem
            self._tiers.log.flush()  # so that no later line is taken for one that waited
            files.erase(needles)
        untouched = tuple(Untouched(*pair) for pair in sorted(files.untouched.items()))
        return Erasure(rows, tuple(sorted(files.changed)), untouched, is_dry)

    def _rows(self, target: Target, *, is_dry: bool) -> dict[str, int]:
        def act(writer: Writer) -> dict[str, int]:
            rows = dict(erase_rows(writer.connection, self._tiers, target))
            writer.known.forget()
            if is_dry:
                raise _Rehearsal(rows)
            return rows

        usual = self._database.alone(lambda connection: _overwrite_freed(connection, 1))
        try:
            return self._database.write(act)
        except _Rehearsal as rehearsal:
            return rehearsal.rows
        finally:
            self._tiers.branches.forget()
            self._database.alone(lambda connection: _overwrite_freed(connection, usual))

    def _compact(self) -> str:
        """Remove the remains in free pages and the log; return why it could not be done."""

        def act(connection: sqlite3.Connection) -> bool:
            with closing(connection.execute("PRAGMA busy_timeout")) as cursor:
                (usual,) = cursor.fetchone()
            try:
                connection.execute(f"PRAGMA busy_timeout = {_WAIT_FOR_WRITERS_MS}")
                connection.execute("VACUUM")
                connection.execute(f"PRAGMA busy_timeout = {_WAIT_FOR_READERS_MS}")
                row = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return not row[0]
            finally:
                connection.execute(f"PRAGMA busy_timeout = {usual}")

        try:
            is_done = self._database.alone(act)
        except BranchedMemoryError as error:
            return f"its rows are clean, its free pages may not be: {error}"
        if is_done:
            return ""
        return "another process reads it, and its pages before the erasure; erase again later"


def _overwrite_freed(connection: sqlite3.Connection, mode: int) -> int:
    """Set whether freed space is overwritten with zeros; return the mode of before."""
    (usual,) = connection.execute("PRAGMA secure_delete").fetchone()
    connection.execute(f"PRAGMA secure_delete = {int(mode)}").fetchall()
    return int(usual)


def checked_target(
    *, record_id: str | int | None, event_id: str | int | None, key: str | None, text: str | None
) -> Target:
    """Check the target of an erasure.

    Raises:
        InvalidUpdate: If not exactly one thing is given, or it is malformed.
    """
    if [record_id, event_id, key, text].count(None) != 3:
        raise InvalidUpdate("erase", "needs one of a record, an event, a key and a text")
    if text is not None:
        checked = checked_text("text", text)
        if len(checked.strip()) < _LEAST_CHARS or checked in ERASED:
            raise InvalidUpdate("text", "must have two characters, and be no part of the mark")
        return Target(text=checked)
    if key is not None:
        return Target(key=name("key", key))
    if record_id is not None:
        return Target(record=_number("record_id", record_id))
    return Target(event=_number("event_id", event_id))


def _number(field: str, value: object) -> int:
    number = whole(field, value)
    if number >= FOREVER:
        raise InvalidUpdate(field, "is no number of a row")
    return number
