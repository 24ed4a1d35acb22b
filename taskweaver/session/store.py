"""Sessions on disk: a folder each, with its memory, its working files and a lock."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from taskweaver.memory.branch_log import BranchLog
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import BranchedMemoryError, UnknownBranch
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.memory.memory import Memory
from taskweaver.session.clone import clone_folder
from taskweaver.session.compare import (
    BranchDifference,
    differing_files,
    differing_variables,
    rounds_apart,
    variables_of,
)
from taskweaver.session.damage import DAMAGED_FILES, MEMORY_FILE, readable_rounds
from taskweaver.session.errors import SessionError
from taskweaver.session.folder_check import require_plain_folder, require_plain_folders
from taskweaver.session.lock import LOCK_FILE, is_locked, locked
from taskweaver.utils.files import read_text, write_text

WORKING_FOLDER = "cwd"
MAIN_BRANCH, BRANCHES_FOLDER = "main", "branches"
_CURRENT_FILE = "current_branch"
_MOST_NAME_BYTES = 1_000
_SIGNS_OF_USE = (_CURRENT_FILE, "kernel.log", "state", DAMAGED_FILES)
"""Patterns of what a session has after its first round; without its memory it was damaged."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


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
        problem: Why it cannot be opened; empty when it can. The rounds are those that can be
            read then.
    """

    session_id: str
    folder: Path
    changed_at: datetime
    rounds: int
    first_query: str
    is_open: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """A branch of a session.

    Attributes:
        name: Its name.
        parent: Name of the branch it was forked from; None for the first.
        rounds: How many rounds it sees.
        is_current: Whether it is the one that is gone on with.
    """

    name: str
    parent: str | None
    rounds: int
    is_current: bool


class SessionFiles:
    """An open session's files: locked, so that no second process works on them. Close it."""

    def __init__(self, session_id: str, folder: Path, config: MemoryConfig) -> None:
        """Open a session's files, or make them.

        Raises:
            SessionInUse: If another process has them open.
            SessionError: If they cannot be made, or hold links, pipes or devices.
            StoreCorrupt, StoreTooNew, StoreUnwritable: If the memory cannot be opened.
        """
        self.session_id = session_id
        self.folder = folder
        require_plain_folder(folder)
        try:
            # Private: what code leaves in there is nobody else's to read, or to run.
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / WORKING_FOLDER).mkdir(exist_ok=True)
        except OSError as error:
            raise SessionError(f"{folder} cannot be made: {error.strerror}") from error
        self._lock = locked(folder)
        try:
            require_own_memory(folder)
            self.store = MemoryManager(folder / MEMORY_FILE, config)
            self._prepare_branches()
        except BaseException:
            self._lock.close()
            raise

    def _prepare_branches(self) -> None:
        try:
            if self.store.root_branch_id is None:
                self.store.create_branch(None, branch_id=MAIN_BRANCH)
            require_plain_folders(map(self.working_folder, self._names()))
        except BaseException:
            self.store.close()
            raise

    def memory(self, branch: str) -> Memory:
        """Return a branch's conversation as it was left; every write to it goes to disk."""
        log = BranchLog(self.store, branch)
        return Memory(self.session_id, log, log.resume())

    def working_folder(self, branch: str) -> Path:
        """Return the working directory of a branch."""
        if branch == MAIN_BRANCH:
            return self.folder / WORKING_FOLDER
        return self.folder / BRANCHES_FOLDER / branch / WORKING_FOLDER

    @property
    def current(self) -> str:
        """Name of the branch that is gone on with."""
        try:
            name = read_text(self.folder / _CURRENT_FILE, _MOST_NAME_BYTES).strip()
        except (OSError, ValueError):
            return MAIN_BRANCH
        known = self._names()
        return name if name in known else MAIN_BRANCH

    def set_current(self, name: str) -> None:
        """Remember which branch is gone on with."""
        write_text(self.folder / _CURRENT_FILE, name)

    def require(self, name: str) -> None:
        """Raise unless there is a branch of this name.

        Raises:
            SessionError: If there is none; the text names those there are.
        """
        known = self._names()
        if name not in known:
            raise SessionError(f"There is no branch {name!r}; there are {', '.join(known)}.")

    def _names(self) -> list[str]:
        # An imported memory may have branches of other names; none of them becomes a folder.
        return [branch.id for branch in self.store.branches() if _NAME.fullmatch(branch.id)]

    def branches(self) -> list[BranchInfo]:
        """Return the branches, parents before children."""
        branches = self.store.branches()
        names = {branch.number: branch.id for branch in branches}
        current = self.current
        return [
            BranchInfo(
                branch.id,
                None if branch.parent is None else names[branch.parent],
                len(self.store.turns.load(branch.id, with_posts=False)),
                branch.id == current,
            )
            for branch in branches
        ]

    def round_ids(self, name: str) -> list[str]:
        """Return the ids of the rounds that a branch sees, oldest first."""
        return [stored.id for stored in self.store.turns.load(name, with_posts=False)]

    def lineage(self, name: str) -> list[str]:
        """Return a branch and its ancestors, the branch itself first."""
        branches = {branch.id: branch for branch in self.store.branches()}
        names = {branch.number: branch.id for branch in branches.values()}
        found = [name]
        while (parent := branches[found[-1]].parent) is not None:
            found.append(names[parent])
        return found

    def free_name(self, stem: str) -> str:
        """Return the first of ``stem-1``, ``stem-2``, ... that no branch has."""
        known = {branch.id for branch in self.store.branches()}
        return next(f"{stem}-{n}" for n in count(1) if f"{stem}-{n}" not in known)

    def fork(self, parent: str, name: str, at_round: int | None, *, limit_bytes: int) -> str:
        """Make a branch: its files first, its row last, so that none is ever without its files.

        Raises:
            SessionError: If the name is taken or malformed, there is no such round, or the files
                cannot be copied.
        """
        known = {branch.id for branch in self.store.branches()}
        name = name or self.free_name("branch")
        if not _NAME.fullmatch(name) or name in known:
            problem = "is taken" if name in known else "is no name: letters, digits, - and _ only"
            raise SessionError(f"{name!r} {problem}.")
        at = None if at_round is None else self._end_of(parent, at_round)
        self.copy_files(parent, name, limit_bytes=limit_bytes)
        return self.store.fork(parent, name, at=at)

    def copy_files(self, parent: str, name: str, *, limit_bytes: int) -> Path:
        """Copy the working files of a branch for one that is to be made; return their folder.

        Raises:
            SessionError: If they cannot be copied.
        """
        folder = self.working_folder(name)
        self.remove_files(name)  # of a fork that was cut off
        folder.parent.mkdir(parents=True)
        clone_folder(self.working_folder(parent), folder, limit_bytes=limit_bytes)
        return folder

    def add_branch(self, parent: str, name: str) -> None:
        """Make a branch whose files are there; see `copy_files`."""
        self.store.fork(parent, name)

    def remove_files(self, name: str) -> None:
        """Remove the working files of a branch that was not made."""
        if name == MAIN_BRANCH:
            raise SessionError("The first branch always exists.")
        shutil.rmtree(self.working_folder(name).parent, ignore_errors=True)

    def _end_of(self, branch: str, number: int) -> int:
        rounds = self.store.turns.load(branch, with_posts=False)
        if not 0 <= number <= len(rounds):
            raise SessionError(f"There is no round {number}; this branch has {len(rounds)}.")
        return rounds[number - 1].end_seq if number else (rounds[0].seq - 1 if rounds else 0)

    def diff(self, first: str, second: str) -> BranchDifference:
        """Return how two branches differ.

        Raises:
            SessionError: If there is no such branch.
        """
        for name in (first, second):
            self.require(name)
        one, two = (BranchLog(self.store, name).rounds() for name in (first, second))
        return BranchDifference(
            rounds_apart(one, two),
            self.store.diff(first, second),
            differing_variables(variables_of(one), variables_of(two)),
            differing_files(self.working_folder(first), self.working_folder(second)),
        )

    def close(self) -> None:
        """Close the memory, and let others have the session; safe to call again."""
        self.store.close()
        self._lock.close()


def stored_sessions(root: Path) -> list[StoredSession]:
    """Return the sessions below a folder, the newest first.

    One in which nothing was asked is left out; one that cannot be opened has a problem.
    """
    found = [_described(folder) for folder in session_folders(root)]
    asked = [session for session in found if session is not None]
    return sorted(asked, key=lambda session: (session.changed_at, session.session_id), reverse=True)


def session_folders(root: Path) -> list[Path]:
    """Return the folders of the sessions below a folder, whether or not they can be opened."""
    files = (path for name in (MEMORY_FILE, LOCK_FILE) for path in root.glob(f"*/{name}"))
    return sorted({path.parent for path in files if _NAME.fullmatch(path.parent.name)})


def _described(folder: Path) -> StoredSession | None:
    try:
        return stored_session(folder)
    except (BranchedMemoryError, SessionError, OSError) as error:
        problem = str(error)
    try:
        rounds, first_query = readable_rounds(folder)
    except OSError:
        rounds, first_query = 0, ""
    changed = max(path.lstat().st_mtime for path in (folder, *folder.glob("memory.*")))
    time = datetime.fromtimestamp(changed, UTC)
    return StoredSession(folder.name, folder, time, rounds, first_query, False, problem)


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
    with MemoryManager(folder / MEMORY_FILE, MemoryConfig(memory_log_enabled=False)) as store:
        try:
            rounds = store.turns.load(MAIN_BRANCH, with_posts=False)
        except UnknownBranch:
            return None
    if not rounds:
        return None
    newest = max(path.stat().st_mtime for path in folder.glob(f"{MEMORY_FILE}*"))
    first = rounds[0].user_query.strip().rpartition("\n")[2]
    changed = datetime.fromtimestamp(newest, UTC)
    return StoredSession(folder.name, folder, changed, len(rounds), first, is_open)


def require_session(root: Path, session_id: str) -> Path:
    """Return the folder of a session, whether or not it can be opened.

    Raises:
        SessionError: If there is no such session.
    """
    folder = root / session_id
    if _NAME.fullmatch(session_id) and any(map(os.path.lexists, _marks(folder))):
        return folder
    raise SessionError(f"There is no session {session_id!r}.")


def _marks(folder: Path) -> list[Path]:
    return [folder / MEMORY_FILE, folder / LOCK_FILE]


def remove_session(root: Path, session_id: str) -> None:
    """Delete a session with all its files.

    Raises:
        SessionError: If there is no such session, or it cannot be deleted.
        SessionInUse: If a process has it open.
    """
    folder = root / session_id
    require_session(root, session_id)
    with locked(folder):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise SessionError(f"{folder} cannot be deleted: {error}") from error
