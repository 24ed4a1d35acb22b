"""Removes texts from the files beside a memory: logs, prompt logs, the final memory, the original.

A text is overwritten where it stands with a mark of the same length. So a log keeps its lines and
its readers, a process that appends to it is not disturbed, no copy of the file is made, and an
erasure that was interrupted is finished by the next one.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from taskweaver.memory.branched.erasure.finding import FormFinder, Span, joined
from taskweaver.memory.branched.erasure.needles import ERASED, Needles
from taskweaver.utils.files import create_private
from taskweaver.utils.sqlite_files import (
    READ_ERRORS,
    column_names,
    drop_programs,
    harden,
    quoted_name,
    table_names,
)

_BESIDE = ("memory_database.html", "memory_*.jsonl")
_OTHER_COPIES = ("*.partial", "*.damaged*", "*.backup", "*.bak")
_ORIGINAL = re.compile(r".*\.original(?:-\d+)?")
_BACKSLASH = ord("\\")
_DRAFT = ".erasing"
_MOST_BYTES = 1 << 30
_SQLITE = b"SQLite format 3\0"
_READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ_WRITE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Untouched:
    """A file that may still hold an erased text, and the reason why it was left as it is."""

    path: str
    reason: str


class ErasedFiles:
    """One erasure in the files of a memory.

    Attributes:
        changed: Files that held a text.
        untouched: Files that may still hold one.
    """

    def __init__(
        self,
        path: Path,
        logs: Path,
        folders: Sequence[Path],
        *,
        names: Sequence[str] = (),
        is_dry: bool,
    ) -> None:
        """Take the memory, the folder of its logs, and folders to look through as a whole.

        `names` are further files beside the memory, or in the folder `memory` there; with `is_dry`
        the texts are only looked for.
        """
        self._path = path
        self._name = glob.escape(path.name)
        self._logs = logs
        self._folders = folders
        self._patterns = (*_BESIDE, *map(glob.escape, names))
        self._is_dry = is_dry
        self.changed: set[str] = set()
        self.untouched: dict[str, str] = {}

    def erase(self, needles: Needles) -> None:
        """Overwrite the texts in all files; files that cannot be changed are noted."""
        for draft in self._path.parent.glob(f"{self._name}.original*{_DRAFT}"):
            draft.unlink(missing_ok=True)  # of an erasure that was interrupted
        if not needles:
            return
        finder = FormFinder(needles.forms())
        for path in dict.fromkeys(self._places()):
            self._guarded(path, partial(self._overwrite, path, finder))
        for path in self._copies():
            self._guarded(path, partial(self._look, path, finder))
        for path in sorted(self._path.parent.glob(f"{self._name}.original*")):
            if _ORIGINAL.fullmatch(path.name):
                self._guarded(path, partial(self._original, path, needles))

    def _guarded(self, path: Path, act: Callable[[], object]) -> None:
        try:
            act()
        except FileNotFoundError:
            return  # removed since it was listed
        except OSError as error:
            self.untouched[str(path)] = f"it cannot be changed: {error.strerror or error}"
        except READ_ERRORS as error:
            self.untouched[str(path)] = f"it cannot be read as a database: {error}"

    def _places(self) -> Iterator[Path]:
        folder = self._path.parent
        for home in (folder, folder / "memory"):
            for pattern in self._patterns:
                yield from sorted(home.glob(pattern))
        yield from sorted(folder.glob(f"{self._name}.original*.json"))
        yield from sorted(self._logs.glob("memory_*.jsonl*"))
        for given in self._folders:
            if not given.is_dir():
                self.untouched[str(given)] = "it is no folder"
                continue
            yield from (path for path in sorted(given.rglob("*")) if not path.is_dir())

    def _copies(self) -> Iterator[Path]:
        for ending in _OTHER_COPIES:
            yield from sorted(self._path.parent.glob(glob.escape(self._path.stem) + ending))

    def _overwrite(self, path: Path, finder: FormFinder) -> None:
        """Overwrite the texts in one file."""
        data = _content(path)
        if data is None:
            return
        found = _places_in(data, finder, is_markdown=path.suffix == ".md")
        if not found:
            return
        if data.startswith(_SQLITE):
            if path.resolve() not in self._own():
                self.untouched[str(path)] = "it is another database, and holds the text"
            return
        if not path.stat().st_mode & stat.S_IWUSR:
            self.untouched[str(path)] = "it is protected against writing, and holds the text"
            return
        self.changed.add(str(path))
        if self._is_dry:
            return
        with os.fdopen(os.open(path, _READ_WRITE), "r+b") as file:
            for start, end in found:
                file.seek(start)
                if file.read(end - start) == data[start:end]:
                    file.seek(start)
                    file.write(_mark(end - start))
            file.flush()
            os.fsync(file.fileno())
        self.untouched.pop(str(path), None)

    def _look(self, path: Path, finder: FormFinder) -> None:
        """Note a copy of the memory that holds a text; copies are not changed."""
        data = _content(path)
        if data is not None and _places_in(data, finder, is_markdown=False):
            self.untouched[str(path)] = "it is a copy of the memory, and holds the text"

    def _own(self) -> set[Path]:
        path = self._path.resolve()
        return {path.with_name(path.name + ending) for ending in ("", "-wal", "-shm")}

    def _original(self, path: Path, needles: Needles) -> None:
        """Put a copy without the texts in the place of a file that was migrated."""
        draft = path.with_name(path.name + _DRAFT)
        try:
            create_private(draft)
            if not _copied_without(path, draft, needles):
                return
            if not path.stat().st_mode & stat.S_IWUSR:
                self.untouched[str(path)] = "it is protected against writing, and holds the text"
                return
            self.changed.add(str(path))
            is_alone = path.stat().st_nlink == 1
            if not is_alone:
                self.untouched[str(path)] = "its other names (hard links) still hold the text"
            if not self._is_dry:
                draft.chmod(stat.S_IMODE(path.stat().st_mode))
                _replace(path, draft, is_overwritten=is_alone)
        finally:
            draft.unlink(missing_ok=True)


def _content(path: Path) -> bytes | None:
    """Return the bytes of a file; None if it is no ordinary file.

    Raises:
        OSError: If it cannot be read, is a link, or is too large.
    """
    if path.is_symlink():
        return None
    with os.fdopen(os.open(path, _READ_ONLY), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            return None
        if found.st_size > _MOST_BYTES:
            raise OSError(errno.EFBIG, "it is larger than 1 GiB")
        return file.read()


def _places_in(data: bytes, finder: FormFinder, *, is_markdown: bool) -> list[Span]:
    """Return where bytes hold any of some texts, none twice."""
    found = finder.spans(data)
    if not is_markdown or b"\\" not in data:
        return found
    # A character that would be markup stands behind a backslash there.
    kept = [place for place, byte in enumerate(data) if byte != _BACKSLASH]
    plain = finder.spans(data.replace(b"\\", b""))
    return joined([*found, *((kept[start], kept[end - 1] + 1) for start, end in plain)])


def _mark(length: int) -> bytes:
    """Return the mark in a given length; stars where it has no room."""
    return ERASED.encode().ljust(length) if length >= len(ERASED) else b"*" * length


def _copied_without(path: Path, draft: Path, needles: Needles) -> bool:
    """Copy a database of the original without the texts; return whether it held any.

    Its own triggers and views do not run, and are not copied; neither is its full-text index.
    """
    has_log = path.with_name(path.name + "-wal").exists()
    address = f"{path.absolute().as_uri()}?{'mode=rw' if has_log else 'immutable=1'}"
    with closing(sqlite3.connect(address, uri=True)) as source:
        harden(source)
        with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
            source.backup(copy)
            harden(copy)
            copy.execute("PRAGMA secure_delete = ON")
            copy.execute("PRAGMA journal_mode = DELETE")
            drop_programs(copy)
            _drop_indexes(copy)
            count = sum(_clean_table(copy, table, needles) for table in table_names(copy))
            if count:
                copy.execute("VACUUM")
            return count > 0


def _drop_indexes(copy: sqlite3.Connection) -> None:
    """Drop full-text indexes and other virtual tables."""
    rows = copy.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    for (name,) in rows:
        copy.execute(f"DROP TABLE {quoted_name(name)}")


def _clean_table(copy: sqlite3.Connection, table: str, needles: Needles) -> int:
    """Remove the texts from one table; return how many rows held any."""
    columns = column_names(copy, table)
    names = ", ".join(map(quoted_name, columns))
    is_core = {"key", "value"} <= set(columns)
    changed = []
    for number, *values in copy.execute(f"SELECT rowid, {names} FROM {quoted_name(table)}"):
        field = str(values[columns.index("key")]) if is_core else ""
        new = [needles.clean_data(value, field=field) for value in values]
        if new != values:
            changed.append((*new, number))
    marks = ", ".join(f"{quoted_name(name)} = ?" for name in columns)
    copy.executemany(f"UPDATE {quoted_name(table)} SET {marks} WHERE rowid = ?", changed)
    return len(changed)


def _replace(path: Path, draft: Path, *, is_overwritten: bool) -> None:
    """Put a file in the place of another, and overwrite the bytes of that one if asked to."""
    with path.open("r+b") as former:
        draft.replace(path)
        if not is_overwritten:
            return
        length = former.seek(0, os.SEEK_END)
        former.seek(0)
        while length > 0:
            length -= former.write(bytes(min(length, 1 << 20)))
        former.flush()
        os.fsync(former.fileno())
