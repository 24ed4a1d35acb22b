"""Sessions on disk: those there are, damaged ones included, and their removal."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from taskweaver.memory.branch_log import newest_failed
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import BranchedMemoryError, StoreCorrupt, UnknownBranch
from taskweaver.memory.branched.store import BranchedMemory
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
from taskweaver.session.storage.layout import CHAT, layout_of
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.files import read_text

CURRENT_FILE = "current_branch"
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names of sessions and branches, which become names of folders."""
_MOST_NAME_BYTES = 1_000
_SIGNS_OF_USE = (CURRENT_FILE, "kernel.log", "state", DAMAGED_FILES)
"""Patterns of entries that a session has after its first round, when it has a memory file too."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session on disk.

    Attributes:
        session_id: Its id.
        folder: Its folder.
        changed_at: When a round, post or end of a round was last stored; for a damaged one, when
            its memory file was last written.
        rounds: Number of its rounds; of a run, of the chat that was used last.
        first_query: The user's first message.
        is_open: Whether a process has it open.
        branches: Number of its branches, in a run of chats; 0 for a damaged one.
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
    return SessionListing(root).read()


class SessionListing:
    """The sessions below a folder, read often: one that did not change is not opened again."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[Path, tuple[tuple[int, ...], StoredSession | None]] = {}

    def read(self, runs: Iterable[Path] = ()) -> list[StoredSession]:
        """Return the sessions as `stored_sessions` does, and those of some runs with chats."""
        folders = [*session_folders(self._root), *runs]
        self._known = {folder: self._read(folder) for folder in folders}
        described = [one for _, one in self._known.values() if one is not None]
        found = [replace(one, is_open=is_locked(one.folder)) for one in described]
        return sorted(found, key=lambda one: (one.changed_at, one.session_id), reverse=True)

    def _read(self, folder: Path) -> tuple[tuple[int, ...], StoredSession | None]:
        version, known = _version(folder), self._known.get(folder)
        return known if known and known[0] == version else (version, _described(folder))


def _version(folder: Path) -> tuple[int, ...]:
    """Return times and sizes of the files of a session's memory."""
    found: list[int] = []
    memory = layout_of(folder).memory
    for ending in ("", "-wal"):
        try:
            facts = (folder / f"{memory}{ending}").stat()
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
    changed = datetime.fromtimestamp(max(_version(folder)) / 1e9, UTC)
    return StoredSession(folder.name, folder, changed, rounds, first_query, False, problem)


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


def current_name(folder: Path) -> str:
    """Return the name of the branch that was current last, as its file has it; empty for none."""
    try:
        return read_text(folder / CURRENT_FILE, _MOST_NAME_BYTES).strip()
    except (OSError, ValueError):
        return ""


def stored_session(folder: Path) -> StoredSession | None:
    """Return the session in a folder, None unless something was asked in it.

    Raises:
        StoreTooNew, StoreCorrupt, StoreUnwritable, StoreBusy: If its memory cannot be opened.
        SessionError: If its memory is gone, or the folder holds links, pipes or devices.
    """
    require_plain_folder(folder)
    is_open, layout = is_locked(folder), layout_of(folder)
    branch = layout.root if layout is CHAT else current_name(folder)
    if not is_open and layout is CHAT:
        require_own_memory(folder)
    if not (folder / layout.memory).is_file():
        return None
    with BranchedMemory(folder / layout.memory, MemoryConfig(memory_log_enabled=False)) as store:
        try:
            rounds = store.turns.load(branch, with_posts=False)
        except UnknownBranch:
            return None
        # Not the time of the file: to open one whose process was killed writes to it.
        used_at = min(max(store.turns.last_at(), 0.0), time.time())
        branches = sum(not layout.is_of_search(one.id) for one in store.branches())
        has_failed = False
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
