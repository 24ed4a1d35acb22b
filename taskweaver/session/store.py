"""Sessions on disk: a folder each, with its memory, its working files and a lock."""

from __future__ import annotations

import fcntl
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from taskweaver.memory.branch_log import BranchLog
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import BranchedMemoryError
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.memory.memory import Memory
from taskweaver.session.errors import SessionError, SessionInUse

MEMORY_FILE, LOCK_FILE, WORKING_FOLDER = "memory.sqlite", "session.lock", "cwd"
MAIN_BRANCH = "main"


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session on disk.

    Attributes:
        session_id: Its id.
        folder: Its folder.
        changed_at: When it was last written to.
        rounds: How many rounds it has.
        first_query: What was asked first.
        is_open: Whether a process has it open.
    """

    session_id: str
    folder: Path
    changed_at: datetime
    rounds: int
    first_query: str
    is_open: bool


class SessionFiles:
    """An open session's files: locked, so that no second process works on them. Close it."""

    def __init__(self, session_id: str, folder: Path, config: MemoryConfig) -> None:
        """Open a session's files, or make them.

        Raises:
            SessionInUse: If another process has them open.
            SessionError: If they cannot be made.
            StoreCorrupt, StoreTooNew, StoreUnwritable: If the memory cannot be opened.
        """
        self.session_id = session_id
        self.folder = folder
        try:
            (folder / WORKING_FOLDER).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SessionError(f"{folder} cannot be made: {error.strerror}") from error
        self._lock = _locked(folder)
        try:
            self.store = MemoryManager(folder / MEMORY_FILE, config)
            if self.store.root_branch_id is None:
                self.store.create_branch(None, branch_id=MAIN_BRANCH)
        except BaseException:
            self._lock.close()
            raise

    def memory(self) -> Memory:
        """Return the conversation as it was left; every write to it goes to disk."""
        log = BranchLog(self.store, MAIN_BRANCH)
        return Memory(self.session_id, log, log.load())

    def close(self) -> None:
        """Close the memory, and let others have the session; safe to call again."""
        self.store.close()
        self._lock.close()


def _locked(folder: Path) -> IO[str]:
    """Take the session's lock; the system gives it back when this process ends, however it does."""
    file = (folder / LOCK_FILE).open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        owner = file.read().strip()
        file.close()
        raise SessionInUse(
            f"Session {folder.name} is open in another process{f' ({owner})' if owner else ''}."
            " Leave it there first."
        ) from error
    file.truncate(0)
    file.write(f"process {os.getpid()}")
    file.flush()
    return file


def stored_sessions(root: Path) -> list[StoredSession]:
    """Return the sessions below a folder in which something was asked, the newest first."""
    found = [_stored(path.parent) for path in sorted(root.glob(f"*/{MEMORY_FILE}"))]
    asked = [session for session in found if session is not None and session.rounds]
    return sorted(asked, key=lambda session: session.changed_at, reverse=True)


def _stored(folder: Path) -> StoredSession | None:
    try:
        with MemoryManager(folder / MEMORY_FILE, MemoryConfig(memory_log_enabled=False)) as store:
            rounds = store.turns.load(MAIN_BRANCH)
    except BranchedMemoryError:
        return None
    newest = max(path.stat().st_mtime for path in folder.glob(f"{MEMORY_FILE}*"))
    first = rounds[0].user_query.strip().rpartition("\n")[2] if rounds else ""
    changed = datetime.fromtimestamp(newest, UTC)
    return StoredSession(folder.name, folder, changed, len(rounds), first, _is_open(folder))


def _is_open(folder: Path) -> bool:
    try:
        _locked(folder).close()
    except SessionInUse:
        return True
    return False


def remove_session(root: Path, session_id: str) -> None:
    """Delete a session with all its files.

    Raises:
        SessionError: If there is no such session, or it cannot be deleted.
        SessionInUse: If a process has it open.
    """
    folder = root / session_id
    if Path(session_id).name != session_id or not (folder / MEMORY_FILE).is_file():
        raise SessionError(f"There is no session {session_id!r}.")
    with _locked(folder):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise SessionError(f"{folder} cannot be deleted: {error}") from error
