"""The folder of a session: its lock, the refusal of foreign entries, and copies of its memory file.

The program appends to files of a session and reads others without being asked. In a folder that
was copied from elsewhere, each may be a link to a file of the user's, or a pipe that never ends.
Code in the sandbox reaches only the working folders, so a checked folder stays as it is.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from taskweaver.memory.branch_log import require_texts
from taskweaver.memory.branched.repair import Row, readable_rows
from taskweaver.memory.post import Post
from taskweaver.session.errors import SessionError, SessionInUse
from taskweaver.utils.file_system.safe_fs import copy_content, open_ordinary
from taskweaver.utils.sqlite_files import SIDE_FILES, require_plain

LOCK_FILE = "session.lock"
_MOST_CHARS = 100
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FLAT = ("logs", "state", "state-untrusted", "state/chunks", "state/rounds")
"""Folders whose entries the program itself writes."""
_MOST_NAMED = 3
MEMORY_FILE = "memory.sqlite"
DAMAGED_FILES = "memory.damaged-*.sqlite"
"""Names of files that a repair put aside."""
_STATES = {"created", "finished", "failed"}
_SPARE_BYTES = 1 << 20


def locked(folder: Path, *, is_written: bool = True) -> IO[str]:
    """Take the lock of a session. The system gives it back when this process ends.

    With `is_written` the process is named in the file, which needs the right to write it.

    Raises:
        SessionInUse: If another process has it.
        SessionError: If the file cannot be opened, or is a link, a pipe or a device.
    """
    path = folder / LOCK_FILE
    try:
        file = _opened(path, is_written=is_written)
    except OSError as error:
        raise SessionError(f"{path} cannot be opened: {error.strerror or error}.") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = file.read(_MOST_CHARS).strip()
        file.close()
        raise SessionInUse(
            f"Session {folder.name} is open in another process{f' ({owner})' if owner else ''}."
            " Leave it there first."
        ) from error
    if is_written:
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
    return file


def _opened(path: Path, *, is_written: bool) -> IO[str]:
    flags = os.O_RDWR | os.O_CREAT if is_written else os.O_RDONLY
    number = os.open(path, flags | _FLAGS, 0o600)
    try:
        facts = os.fstat(number)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
            raise OSError("it is no ordinary file, or has a second name elsewhere")
        return os.fdopen(number, "r+" if is_written else "r", encoding="utf-8", errors="replace")
    except BaseException:
        os.close(number)
        raise


def is_locked(folder: Path) -> bool:
    """Return whether a process has a session open. Nothing is written."""
    if not (folder / LOCK_FILE).exists():
        return False
    try:
        locked(folder, is_written=False).close()
    except SessionError as error:
        return isinstance(error, SessionInUse)
    return False


def folder_problems(folder: Path) -> list[str]:
    """Return the entries of a session's folder that the program must not touch, a line each."""
    if folder.is_symlink():
        return [f"{folder} is a link"]
    found = []
    for place in (folder, *(folder / name for name in _FLAT)):
        if place.is_symlink() or not place.is_dir():
            continue
        try:
            with os.scandir(place) as entries:
                listed = list(entries)
        except PermissionError as error:
            found.append(f"{place} cannot be read: {error.strerror}")
            continue
        for entry in listed:
            with suppress(FileNotFoundError):  # the process of the session removed it since
                problem = _problem(entry.stat(follow_symlinks=False), is_top=place == folder)
                found += [f"{entry.path} {problem}"] if problem else []
    return found


def _problem(facts: os.stat_result, *, is_top: bool) -> str:
    if stat.S_ISLNK(facts.st_mode):
        return "is a link"
    if stat.S_ISDIR(facts.st_mode):
        return ""
    if not stat.S_ISREG(facts.st_mode):
        return "is no ordinary file"
    # States that are equal share one file, so links between them are the program's own.
    return "has a second name elsewhere" if is_top and facts.st_nlink > 1 else ""


def require_plain_folder(folder: Path) -> None:
    """Raise if a session's folder holds links, pipes or devices.

    Raises:
        SessionError: If it does; names them.
    """
    problems = folder_problems(folder) if os.path.lexists(folder) else []
    if problems:
        raise SessionError(
            f"Session {folder.name} is not opened: {'; '.join(problems[:_MOST_NAMED])}."
            " Remove what this program did not make, or copy the content in its place."
        )


def memory_source(folder: Path) -> Path:
    """Return the memory file of a session, or the file that an unfinished repair put aside."""
    file = folder / MEMORY_FILE
    if not file.exists():
        kept = sorted(folder.glob(DAMAGED_FILES))
        file = kept[-1] if kept else file
    return file


@contextmanager
def memory_copy(source: Path) -> Iterator[Path]:
    """Copy a memory file and its write-ahead log to a private folder.

    Yields:
        The copy.

    Raises:
        OSError: If it cannot be read or copied, or a file beside it is a link or unsafe.
    """
    require_plain(source)
    endings = ("", *(ending for ending in SIDE_FILES if ending != "-shm"))
    files = {ending: source.with_name(source.name + ending) for ending in endings}
    files = {ending: file for ending, file in files.items() if not ending or file.exists()}
    with TemporaryDirectory(prefix="taskweaver-session-") as folder:
        _require_room(Path(folder), sum(file.stat().st_size for file in files.values()))
        for ending, beside in files.items():
            copy = Path(folder) / f"{MEMORY_FILE}{ending}"
            with open_ordinary(beside) as file, copy.open("wb") as target:
                copy_content(file, target)
        yield Path(folder) / MEMORY_FILE


def _require_room(folder: Path, size: int) -> None:
    """Raise unless the disk holds a copy and the files SQLite writes beside it.

    Rows that SQLite cannot read because the disk is full would pass for damaged ones.
    """
    needed = 2 * size + _SPARE_BYTES
    if shutil.disk_usage(folder).free < needed:
        raise OSError(
            errno.ENOSPC,
            f"no room for a copy of the memory file in {folder.parent}: {needed >> 20:,} MiB are"
            " needed. Make room, or set TMPDIR to a folder on a larger disk",
        )


def readable_rounds(folder: Path) -> tuple[int, str]:
    """Return the number of readable rounds of a damaged session, and its first message.

    Raises:
        OSError: If nothing of the file can be read.
    """
    with memory_copy(memory_source(folder)) as copy:
        tables, _ = readable_rows(copy)
    rounds = tables["rounds"].rows if "rounds" in tables else {}
    queries = [rounds[key]["user_query"] for key in sorted(rounds, key=lambda key: f"{key:>20}")]
    texts = [query for query in queries if isinstance(query, str)]
    return len(rounds), texts[0] if texts else ""


def row_problem(table: str, row: Row) -> str:
    """Return why a row cannot be part of a conversation, empty when it can."""
    try:
        if table == "posts":
            require_texts(Post.from_dict(json.loads(str(row["body"]))))
        elif table == "round_ends" and row["state"] not in _STATES:
            return f"{row['state']!r:.40} is no state of a round"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return f"it is no post: {error!r:.200}"
    return ""
