"""Errors of a branched memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from taskweaver.errors import TaskWeaverError


class BranchedMemoryError(TaskWeaverError):
    """Base of everything a memory refuses or cannot do. Nothing was written then."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        """Return the problem and the remedy."""
        return self.detail


class UnknownBranch(BranchedMemoryError):
    """No branch, or more than one, has this id."""


class BranchSealed(BranchedMemoryError):
    """The branch takes no more writes."""


class RecordNotVisible(BranchedMemoryError):
    """The branch does not see the record, or does not own the record."""


class InvalidUpdate(BranchedMemoryError):
    """A value is malformed.

    Attributes:
        path: Place of the value, for example ``archival[2].text``.
        problem: Problem with the value.
    """

    def __init__(self, path: str, problem: str) -> None:
        TaskWeaverError.__init__(self, path, problem)
        self.path = path
        self.problem = problem
        self.detail = f"{path}: {problem}"


class MemoryUpdateError(BranchedMemoryError):
    """A reply has no usable ``<memory_update>`` block. The text says how to write one."""


class MissingMemoryUpdateError(MemoryUpdateError):
    """A required block is missing."""


class MalformedMemoryUpdateError(MemoryUpdateError):
    """A block cannot be read."""


class ForbiddenMemoryUpdateError(MemoryUpdateError):
    """A block stands where no block may stand."""


class StoreBusy(BranchedMemoryError):
    """Another process held the file for too long."""


class StoreUnwritable(BranchedMemoryError):
    """The disk is full, or the file may not be written."""


class StoreCorrupt(BranchedMemoryError):
    """The file is damaged, or no memory."""


class StoreTooNew(BranchedMemoryError):
    """A newer version of the program wrote the file."""


class StoreClosed(BranchedMemoryError):
    """The memory was closed, or opened before this process was forked."""


_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_UNWRITABLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}


def is_of_the_system(error: BaseException) -> bool:
    """Return whether an error comes of the disk, the rights, or another process."""
    return _code(error) in _BUSY | _UNWRITABLE


def _code(error: BaseException) -> int:
    """Return SQLite's primary code of an error, or 0."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


@contextmanager
def translated(path: object) -> Iterator[None]:
    """Raise SQLite's errors inside the block as errors of this package, which name the file."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        if "closed database" in str(error):
            raise StoreClosed(f"The memory {path} was closed.") from error
        raise
    except UnicodeDecodeError as error:  # a message of SQLite's that quotes damaged text
        raise StoreCorrupt(
            f"{path} is damaged: it holds text that is not UTF-8. Restore a backup."
        ) from error
    except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
        code = _code(error)
        if code in _BUSY:
            raise StoreBusy(f"{path} is held by another process: {error}. Try again.") from error
        if code in _UNWRITABLE:
            raise StoreUnwritable(
                f"{path} cannot be written: {error}. Check the disk and the file's rights;"
                " to look into a memory that may not be written, copy it to another folder."
            ) from error
        if code in _CORRUPT or "Could not decode to UTF-8" in str(error):
            raise StoreCorrupt(
                f"{path} is damaged, or no memory of TaskWeaver: {error}. Restore a backup;"
                " `taskweaver sessions repair` saves the readable part of a session."
            ) from error
        raise
