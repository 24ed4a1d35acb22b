"""The files of an open session: its memory, its working folders and a lock."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from taskweaver.ces.state_folder import StateFolder
from taskweaver.memory.branch_log import BranchLog
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.memory.cells import variables_of
from taskweaver.memory.memory import Memory
from taskweaver.session.errors import SessionClosed, SessionError, UnknownSessionBranch
from taskweaver.session.storage.compare import (
    BranchDifference,
    Pair,
    differing_files,
    differing_variables,
    rounds_apart,
)
from taskweaver.session.storage.file_lists import FileLists, listed_files
from taskweaver.session.storage.folder import locked, require_plain_folder
from taskweaver.session.storage.layout import CHAT, WORKING, SessionLayout, layout_of
from taskweaver.session.storage.stored_sessions import (
    CURRENT_FILE,
    NAME,
    current_name,
    require_own_memory,
)
from taskweaver.session.storage.workdir import STAGING_FOLDER, clone_into
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.files import write_text
from taskweaver.utils.retrieval import Embedder

_MOST_STEM_CHARS = 40


def working_folder(session_folder: Path, branch: str) -> Path:
    """Return the working directory of a branch of the session in a folder."""
    return session_folder / layout_of(session_folder).working_folder(branch)


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """A branch of a session.

    `parent` is None for the first; `rounds` counts those that it sees. `name` never changes;
    `title` is shown in its place, and is the same until the branch is renamed.
    """

    name: str
    parent: str | None
    rounds: int
    is_current: bool
    title: str


class SessionFiles:
    """An open session's files: locked, so that no second process works on them. Close it.

    Attributes:
        layout: Paths of the parts.
        lists: The lists of working files at the ends of rounds.
        reserved: Names of copies that may become branches.
    """

    def __init__(
        self,
        session_id: str,
        folder: Path,
        config: MemoryConfig,
        layout: SessionLayout = CHAT,
        llm: Callable[[str], str] | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        """Open a session's files, or make them.

        Args:
            session_id: Id of the session.
            folder: Folder of the session.
            config: Configuration of the memory.
            layout: Paths of the parts.
            llm: Model that sums texts of the memory up, see `BranchedMemory`.
            embedder: Makes vectors of records, see `BranchedMemory`.

        Raises:
            SessionInUse: If another process has them open.
            SessionError: If they cannot be made, or hold links, pipes or devices.
            StoreCorrupt, StoreTooNew, StoreUnwritable: If the memory cannot be opened.
        """
        self.session_id, self.layout = session_id, layout
        self.reserved: set[str] = set()
        self._is_closed = False
        if layout is CHAT:  # a run is checked when a chat opens it
            require_plain_folder(folder)
        try:
            # Private: files that code leaves there are for this user alone to read or run.
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder = folder = folder.resolve()
            self._prepare()
        except OSError as error:
            raise SessionError(f"{folder} cannot be made: {error.strerror}") from error
        self._lock = locked(folder)
        try:
            with Folder.at(folder / STAGING_FOLDER) as staging:
                for name in staging.names():  # of branches that a killed process was preparing
                    staging.remove(name)
            if layout is CHAT:  # the file of a run may be made before: its search knows the nodes
                require_own_memory(folder)
            path = folder / layout.memory
            self._store = BranchedMemory(path, config, llm=llm, embedder=embedder)
            self.lists = FileLists(folder)
            self._prepare_branches()
        except BaseException:
            self._lock.close()
            raise

    @property
    def store(self) -> BranchedMemory:
        """The memory.

        Raises:
            SessionClosed: If the files were closed.
        """
        if self._is_closed:
            raise SessionClosed("This session was stopped; start another one.")
        return self._store

    def _prepare(self) -> None:
        """Make the folders of the session. A link in the place of one is refused."""
        with Folder.at(self.folder) as own:
            for path in (self.layout.kernels / WORKING, self.layout.branches, STAGING_FOLDER):
                own.make_folders(path)
                own.folder(path).close()

    def _prepare_branches(self) -> None:
        try:
            if self.store.root is None:
                name, is_live = self.layout.root, self.layout.is_root_live
                self.store.create(name, node_uid=name if is_live else "", live=is_live)
        except BaseException:
            self.store.close()
            raise

    def memory(self, branch: str, open_round: str = "") -> Memory:
        """Return a branch's conversation as it was left. Every write to it goes to disk.

        `open_round` is the id of the round it goes on with, empty for none.
        """
        log = BranchLog(self.store, branch)
        return Memory(self.session_id, log, log.resume(open_round))

    def working_folder(self, branch: str) -> Path:
        """Return the working directory of a branch."""
        return self.folder / self.layout.working_folder(branch)

    @property
    def kernels(self) -> Path:
        """Folder that kernels know as the session's."""
        return self.folder / self.layout.kernels

    @property
    def current(self) -> str:
        """Name of the current branch, or of the first where code replaced its folder."""
        name = current_name(self.folder)
        if name not in self._names():
            return self.layout.root
        try:
            self.open_working_folder(name).close()
        except SessionError:  # an imported one has none yet
            return self.layout.root if os.path.lexists(self.working_folder(name)) else name
        return name

    def set_current(self, name: str) -> None:
        """Remember which branch is gone on with."""
        write_text(self.folder / CURRENT_FILE, name)

    def require(self, name: str) -> None:
        """Raise unless there is a branch of this name.

        Raises:
            SessionError: If there is none; the text names those there are.
        """
        known = self._names()
        if name not in known:
            names = ", ".join(known[:20])
            raise UnknownSessionBranch(f"There is no branch {name!r}; there are {names}.")

    def note_files(self, branch: str, round_id: str) -> None:
        """Keep the list of a branch's working files as that of the end of a round.

        Raises:
            SessionError: If it cannot be kept.
        """
        with self.open_working_folder(branch) as folder:
            self.lists.keep(branch, round_id, listed_files(folder))

    def _names(self) -> list[str]:
        # An imported memory may have branches of other names; none of them becomes a folder.
        return [branch.id for branch in self.store.branches() if NAME.fullmatch(branch.id)]

    def branches(self) -> list[BranchInfo]:
        """Return the branches, parents before children; of a run, its chats and their lines."""
        branches, current = self.store.branches(), self.current
        names = {branch.number: branch.id for branch in branches}
        shown: set[int | None] = set()  # with a branch, the one that it is a fork of
        for branch in reversed(branches):
            is_chat = branch.id == current or not self.layout.is_of_search(branch.id)
            if is_chat or branch.number in shown:
                shown |= {branch.number, branch.parent}
        return [
            BranchInfo(
                branch.id,
                None if branch.parent is None else names[branch.parent],
                len(self.store.turns.load(branch.id, with_posts=False)),
                branch.id == current,
                branch.node_uid or branch.id,
            )
            for branch in branches
            if branch.number in shown
        ]

    def round_ids(self, name: str) -> list[str]:
        """Return the ids of the rounds that a branch sees, oldest first."""
        return [stored.id for stored in self.store.turns.load(name, with_posts=False)]

    @property
    def states(self) -> Path:
        """Folder of the stored variables."""
        return self.folder / "state"

    def manifests_in_use(self, states: StateFolder) -> set[Path]:
        """Return, for each branch of a chat, the manifest that its kernel would start from."""
        found = set()
        for name in self._names():
            if self.layout.is_of_search(name):
                continue  # a state for each node would fill the disk
            lineage, ids = self.lineage(name), self.round_ids(name)
            paths = (states.path(lineage, id_) for id_ in reversed(ids))
            found |= {path for path in [next(filter(None, paths), None)] if path}
        return found

    def lineage(self, name: str) -> list[str]:
        """Return a branch and its ancestors, the branch itself first."""
        return self.store.line(name)

    def free_name(self, stem: str) -> str:
        """Return the first of ``stem-1``, ``stem-2``, ... that no branch has."""
        taken = self._taken()
        return next(f"{stem}-{n}" for n in count(1) if f"{stem}-{n}" not in taken)

    def _similar_name(self, name: str) -> str:
        """Return a name that no branch has, as similar to `name` as can be."""
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_MOST_STEM_CHARS] or "branch"
        if self.layout.is_of_search(plain):
            plain = f"{plain}-fork"
        return self.free_name(plain) if plain in self._taken() else plain

    def _taken(self, but: str = "") -> set[str]:
        """Return the names and titles of all branches, or of all but one."""
        branches = [branch for branch in self.store.branches() if branch.id != but]
        names = {name for one in branches for name in (one.id, one.node_uid) if name}
        return names | self.reserved

    def _require_free(self, name: str) -> None:
        """Raise SessionError unless a new branch can have this name."""
        if not NAME.fullmatch(name):
            raise SessionError("Use letters, digits, - and _ only, no spaces.")
        if name in self._taken():
            raise SessionError(f"{name!r} is taken.")
        if self.layout.is_of_search(name):
            raise SessionError(f"{name!r} is a name of nodes of the search. Take another one.")

    def _require_title(self, title: str, but: str = "") -> None:
        """Raise SessionError unless a new branch, or the branch `but`, can have this title."""
        if not title.strip() or not title.isprintable():
            raise SessionError("A title is one line, without invisible characters.")
        if title in self._taken(but):
            raise SessionError(f"{title!r} is taken.")

    def new_name(self, name: str, title: str = "", *, is_similar: bool = False) -> str:
        """Return the name of a new branch, made of the title, or made up, if `name` is empty.

        With `is_similar` a name that is taken or malformed is replaced by a similar one.

        Raises:
            SessionError: If the name or the title is taken or malformed.
        """
        if title:
            self._require_title(title)
            name = name or self._similar_name(title)
        if is_similar:
            return self._similar_name(name)
        name = name or self.free_name("branch")
        self._require_free(name)
        return name

    def rename(self, branch: str, title: str) -> None:
        """Give a branch a title, which is shown in place of its name. Work on it goes on.

        Raises:
            SessionError: If there is no such branch, or the title is taken or malformed.
        """
        self.require(branch)
        self._require_title(title, but=branch)
        self.store.rename_node(branch, title)

    def fork(
        self, parent: str, name: str, at_round: int | None, title: str = "", *, limit_bytes: int
    ) -> str:
        """Make a branch of a new name: its files first, its row last, so that none lacks its files.

        Args:
            parent: Name of the branch that is forked.
            name: Name of the new branch, from `new_name`.
            at_round: Number of the last round that the branch sees; None for all.
            title: Title that is shown in place of the name; empty for none.
            limit_bytes: Most bytes of files that are copied.

        Raises:
            SessionError: If the round does not exist, or the files cannot be copied.
        """
        at = None if at_round is None else self.end_of(parent, at_round)
        self.copy_files(parent, name, limit_bytes=limit_bytes)
        return self.store[parent].fork(name, at=at, node_uid=title).id

    def copy_files(self, parent: str, name: str, *, limit_bytes: int) -> None:
        """Copy the working files of a branch for one that is to be made.

        Raises:
            SessionError: If they cannot be copied.
        """
        with Folder.at(self.folder) as own, self.open_working_folder(parent) as source:
            target = self.layout.branches / name
            clone_into(own, source, target, WORKING, limit_bytes=limit_bytes)

    def open_working_folder(self, branch: str) -> Folder:
        """Open the working directory of a branch; an attempt that did not run has an empty one.

        Raises:
            SessionError: If it is gone, or code put a link in its place.
        """
        folder = self.working_folder(branch)
        try:
            if self.layout.is_of_search(branch):
                with Folder.at(self.folder) as own:
                    own.make_folders(self.layout.working_folder(branch))
            return Folder.at(folder)
        except OSError as error:
            raise SessionError(f"{folder} cannot be opened: {error.strerror}") from error

    def remove_files(self, name: str) -> None:
        """Remove the working files of a branch that was not made."""
        if name == self.layout.root:
            raise SessionError("The first branch always exists.")
        with Folder.at(self.folder) as own:
            own.remove(self.layout.branches / name)

    def end_of(self, branch: str, number: int) -> int:
        """Return the number in the memory of the end of a round. 0 is before the first.

        Raises:
            SessionError: If there is no such round.
        """
        rounds = self.store.turns.load(branch, with_posts=False)
        if not 0 <= number <= len(rounds):
            raise SessionError(f"There is no round {number}; this branch has {len(rounds)}.")
        return rounds[number - 1].end_seq if number else (rounds[0].seq - 1 if rounds else 0)

    def diff(self, first: str, second: str) -> BranchDifference:
        """Return the differences of two branches.

        Raises:
            SessionError: If a branch does not exist.
        """
        for name in (first, second):
            self.require(name)
        one, two = (BranchLog(self.store, name).rounds() for name in (first, second))
        return BranchDifference(
            rounds_apart(one, two),
            self.store.diff(first, second),
            differing_variables(variables_of(one), variables_of(two)),
            self.differing_files(first, second),
        )

    def differing_files(self, first: str, second: str) -> dict[str, Pair]:
        """Return the working files of two branches that differ, as `BranchDifference` has them.

        Raises:
            SessionError: If one of the folders is gone, or code put a link in its place.
        """
        with self.open_working_folder(first) as one, self.open_working_folder(second) as two:
            return differing_files(one, two)

    def close(self) -> None:
        """Close the memory, and let others have the session. Safe to call again."""
        self._is_closed = True
        self.lists.close()
        self._store.close()
        self._lock.close()
