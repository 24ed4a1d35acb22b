"""Sessions on disk: those there are, damaged ones included, and their removal."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import BranchedMemoryError, StoreCorrupt, UnknownBranch
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.log.branch_log import newest_failed
from taskweaver.session.errors import SessionError
from taskweaver.session.storage.folder import (
    DAMAGED_FILES,
    LOCK_FILE,
    MEMORY_FILE,
    is_locked,
    locked,
    readable_rounds,
    require_plain_folder,
)
from taskweaver.utils.file_system.safe_fs import Folder

MAIN_BRANCH, CURRENT_FILE = "main", "current_branch"
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names of sessions and branches, which become names of folders."""
_SIGNS_OF_USE = (CURRENT_FILE, "kernel.log", "state", DAMAGED_FILES)
"""Patterns of entries that a session has after its first round, when it has a memory file too."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session on disk.

    Attributes:
        session_id: Its id.
        folder: Its folder.
        changed_at: When a round, post or end of a round was last stored; for a damaged one, when
            its files were last written.
        rounds: Number of its rounds.
        first_query: The user's first message.
        is_open: Whether a process has it open.
        branches: Number of its branches; 0 for a damaged one.
        has_failed: Whether its newest round failed, or is code of the user whose cell failed.
        problem: Reason it cannot be opened; empty if it can. Otherwise the rounds are those that
            can be read.
    """

    session_id: str
    folder: Path
    changed_at: datetime
    rounds: int
    first_query: str
    is_open: bool
    problem: str = ""
    branches: int = 0
    has_failed: bool = False


def stored_sessions(root: Path) -> list[StoredSession]:
    """Return the sessions below a folder, the newest first.

    One in which nothing was asked is left out; one that cannot be opened has a problem.
    """
    found = [_described(folder) for folder in session_folders(root)]
    return _newest_first([session for session in found if session is not None])


def _newest_first(found: list[StoredSession]) -> list[StoredSession]:
    return sorted(found, key=lambda session: (session.changed_at, session.session_id), reverse=True)


class SessionListing:
    """The sessions below a folder, read often: one that did not change is not opened again."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[Path, tuple[tuple[int, ...], StoredSession | None]] = {}

    def read(self) -> list[StoredSession]:
        """Return the sessions as `stored_sessions` does."""
        folders = session_folders(self._root)
        found = [self._read(folder) for folder in folders]
        for gone in set(self._known) - set(folders):
            self._known.pop(gone, None)
        return _newest_first([session for session in found if session is not None])

    def _read(self, folder: Path) -> StoredSession | None:
        version = _version(folder)
        known = self._known.get(folder)
        if known is None or known[0] != version:
            known = self._known[folder] = version, _described(folder)
        session = known[1]
        return None if session is None else replace(session, is_open=is_locked(folder))


def _version(folder: Path) -> tuple[int, ...]:
    """Return times and sizes of the files of a session's memory."""
    found: list[int] = []
    for ending in ("", "-wal"):
        try:
            facts = (folder / f"{MEMORY_FILE}{ending}").lstat()
        except OSError:
            found += (0, 0)
        else:
            found += (facts.st_mtime_ns, facts.st_size)
    return tuple(found)


def session_folders(root: Path) -> list[Path]:
    """Return the folders of the sessions below a folder, whether or not they can be opened."""
    files = (path for name in (MEMORY_FILE, LOCK_FILE) for path in root.glob(f"*/{name}"))
    return sorted({path.parent for path in files if NAME.fullmatch(path.parent.name)})


def _described(folder: Path) -> StoredSession | None:
    try:
        return stored_session(folder)
    except (BranchedMemoryError, SessionError, OSError) as error:
        problem = str(error)
    try:
        rounds, first_query = readable_rounds(folder)
    except (BranchedMemoryError, OSError):
        rounds, first_query = 0, ""
    changed = _changed_at(folder, *folder.glob("memory.*"))
    return StoredSession(folder.name, folder, changed, rounds, first_query, False, problem)


def _changed_at(*paths: Path) -> datetime:
    """Return when the newest of some files was written; one that is gone does not count."""
    newest = 0.0
    for path in paths:
        with suppress(FileNotFoundError):
            newest = max(newest, path.lstat().st_mtime)
    return datetime.fromtimestamp(newest, UTC)


def require_own_memory(folder: Path) -> None:
    """Raise if the memory file of a session that exists is empty or gone.

    Raises:
        SessionError: If it is; names the command that repairs the session.
    """
    file = folder / MEMORY_FILE
    if file.exists():
        problem = "" if file.stat().st_size else "empty"
    else:
        problem = "missing" if any(any(folder.glob(name)) for name in _SIGNS_OF_USE) else ""
    if problem:
        raise SessionError(
            f"The memory file of session {folder.name} is {problem};"
            f" `taskweaver sessions repair {folder.name}` makes a new one."
        )


def stored_session(folder: Path) -> StoredSession | None:
    """Return the session in a folder; None unless something was asked in it.

    Raises:
        StoreTooNew, StoreCorrupt, StoreUnwritable, StoreBusy: If its memory cannot be opened.
        SessionError: If its memory is gone, or the folder holds links, pipes or devices.
    """
    require_plain_folder(folder)
    is_open = is_locked(folder)
    if not is_open:
        require_own_memory(folder)
    if not (folder / MEMORY_FILE).is_file():
        return None
    with BranchedMemory(folder / MEMORY_FILE, MemoryConfig(memory_log_enabled=False)) as store:
        try:
            rounds = store.turns.load(MAIN_BRANCH, with_posts=False)
        except UnknownBranch:
            return None
        # Not the time of the file: to open one whose process was killed writes to it.
        used_at = min(max(store.turns.last_at(), 0.0), time.time())
        branches, has_failed = len(store.branches()), False
        with suppress(StoreCorrupt):  # a damaged round of another branch is told where it is read
            has_failed = newest_failed(store)
    if not rounds:
        return None
    first = rounds[0].user_query.strip().rpartition("\n")[2]
    changed = datetime.fromtimestamp(used_at, UTC)
    return StoredSession(
        folder.name,
        folder,
        changed,
        len(rounds),
        first,
        is_open,
        branches=branches,
        has_failed=has_failed,
    )


def require_session(root: Path, session_id: str) -> Path:
    """Return the folder of a session, whether or not it can be opened.

    Raises:
        SessionError: If the session does not exist.
    """
    folder = root / session_id
    if NAME.fullmatch(session_id) and any(
        os.path.lexists(folder / name) for name in (MEMORY_FILE, LOCK_FILE)
    ):
        return folder
    raise SessionError(f"There is no session {session_id!r}.")


def remove_session(root: Path, session_id: str) -> None:
    """Delete a session with all its files.

    Raises:
        SessionError: If the session does not exist, or cannot be deleted.
        SessionInUse: If a process has it open.
    """
    folder = root / session_id
    require_session(root, session_id)
    with locked(folder):
        try:
            with Folder.at(root.resolve()) as parent:
                parent.remove(session_id)
        except OSError as error:
            raise SessionError(f"{folder} cannot be deleted: {error}") from error
