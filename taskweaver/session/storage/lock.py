"""The lock of a session: one process works on its files at a time."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from typing import IO

from taskweaver.session.errors import SessionError, SessionInUse

LOCK_FILE = "session.lock"
_MOST_CHARS = 100
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def locked(folder: Path, *, is_written: bool = True) -> IO[str]:
    """Take the lock of a session; the system gives it back when this process ends.

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
    """Return whether a process has a session open; nothing is written."""
    if not (folder / LOCK_FILE).exists():
        return False
    try:
        locked(folder, is_written=False).close()
    except SessionInUse:
        return True
    except SessionError:
        return False
    return False
