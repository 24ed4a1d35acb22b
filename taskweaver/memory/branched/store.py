"""`BranchedMemory`: one file with a tree of branches, and a handle for each branch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Self, TypeVar

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.erasure import Erasure, checked_target
from taskweaver.memory.branched.errors import UnknownBranch
from taskweaver.memory.branched.handle import BranchHandle
from taskweaver.memory.branched.parts import MemoryParts
from taskweaver.memory.branched.types import Branch, MergeNote, MergePreview, MergeReport, TextModel
from taskweaver.memory.branched.upkeep.compare import MemoryDifference
from taskweaver.memory.branched.upkeep.upkeep import Garbage, Health
from taskweaver.memory.branched.values import file_path
from taskweaver.utils.retrieval import Embedder

R = TypeVar("R")


class BranchedMemory:
    """A memory in one file: a context manager, or ended by `close`.

    `memory["idea-1"]` is the handle of a branch, by its id or node uid; iteration yields the ids
    of the branches, parents before children. Every write is committed when its call returns. All
    methods may be called from any thread.

    Attributes:
        path: The file.
        config: Limits and switches.
        turns: Conversations of the branches.
        summaries: Summaries of older rounds of the conversations.
    """

    def __init__(
        self,
        path: str | Path,
        config: MemoryConfig | None = None,
        *,
        llm: TextModel | None = None,
        embedder: Embedder | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open a memory. A missing file is created.

        Args:
            path: The file.
            config: Limits and switches; None for the defaults.
            llm: Model that shortens texts, summarises events and scores keys; None for none.
            embedder: Makes vectors of records, for example with an embedding model; None compares
                words alone.
            clock: Returns the time in seconds since 1970.

        Raises:
            InvalidUpdate: If the path is malformed.
            StoreTooNew, StoreCorrupt, StoreUnwritable, StoreBusy: If the file cannot be opened.
        """
        self.path = file_path("path", path)
        self.config = config or MemoryConfig()
        self._parts = MemoryParts(self.path, self.config, llm=llm, embedder=embedder, clock=clock)
        self.turns = self._parts.turns
        self.summaries = self._parts.summaries

    def __enter__(self) -> Self:
        """Return the memory itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Finish pending writes and close the file. Safe to call again."""
        if self._parts.database.is_inherited:
            return  # what waits to be logged is the other process's
        try:
            self._parts.log.close()
        finally:
            self._parts.database.close()

    def __getitem__(self, branch_id: str) -> BranchHandle:
        """Return the handle of a branch.

        Raises:
            UnknownBranch: If there is no branch with this id or node uid.
        """
        return BranchHandle(self._parts, self.branch(branch_id).id)

    def together(self, action: Callable[[], R]) -> R:
        """Run an action whose writes to this memory are committed at once.

        Other writers wait for it, and may run it in their thread, so it only writes: it asks no
        model, and what it reads is the state before it.

        Raises:
            BranchedMemoryError: Whatever a write in it raises; nothing was written then.
        """
        return self._parts.database.together(action)

    def __contains__(self, branch_id: object) -> bool:
        """Return whether there is a branch with an id or node uid."""
        try:
            with self._parts.branches.view(branch_id):
                return True
        except UnknownBranch:
            return False

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of the branches, parents before children."""
        return iter([branch.id for branch in self.branches()])

    @property
    def root(self) -> BranchHandle | None:
        """Handle of the oldest root, if any."""
        with self._parts.database.snapshot() as connection:
            root = self._parts.branches.root(connection)
        return None if root is None else BranchHandle(self._parts, root.id)

    @property
    def seq(self) -> int:
        """Number of the newest row. `at=` takes these numbers."""
        with self._parts.database.snapshot() as connection:
            return self._parts.database.now_seq(connection)

    def create(self, name: str = "", *, node_uid: str = "", live: bool = False) -> BranchHandle:
        """Create a root branch, which has no parent.

        Args:
            name: Id of the branch; empty for a random one.
            node_uid: A second name; empty for none.
            live: Whether later writes on it are visible to its descendants.

        Raises:
            InvalidUpdate: If the name is taken or malformed.
        """
        made = self._parts.branches.create(None, name, node_uid=node_uid or None, live=live)
        self._parts.log.add("create_branch", branch_id=made.id, details={"parent": None})
        return BranchHandle(self._parts, made.id)

    def branches(self) -> list[Branch]:
        """Return the facts of every branch, parents before children."""
        with self._parts.database.snapshot() as connection:
            return self._parts.branches.all(connection)

    def branch(self, branch_id: str) -> Branch:
        """Return the facts of a branch.

        Raises:
            UnknownBranch: If there is no branch with this id or node uid.
        """
        with self._parts.branches.view(branch_id) as view:
            return view.branch

    def rename_node(self, branch_id: str, node_uid: str) -> None:
        """Replace the second name of a branch.

        Raises:
            UnknownBranch: If the branch does not exist.
            InvalidUpdate: If the name is malformed.
        """
        branches = self._parts.branches
        self._parts.database.write(
            lambda writer: branches.set_node_uid(
                writer, branches.find(writer.connection, branch_id), node_uid
            )
        )
        self._parts.log.add("update_branch_node_uid", branch_id=branch_id, node_id=node_uid)

    def line(self, branch_id: str) -> list[str]:
        """Return the ids of a branch and its ancestors, the branch itself first.

        Raises:
            UnknownBranch: If there is no branch with this id or node uid.
        """
        branches = self._parts.branches
        with branches.view(branch_id) as view:
            numbers = [segment.branch for segment in branches.path(view)]
            names = branches.names(view.connection, numbers)
        return [names[number] for number in numbers]

    def names(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the ids of branches by number, as in `Event.branch` and `Record.branch`."""
        with self._parts.database.snapshot() as connection:
            return self._parts.branches.names(connection, numbers)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the number of core rows, events and archival rows of each branch itself."""
        return self._parts.upkeep.counts()

    def diff(self, first: str, second: str) -> MemoryDifference:
        """Return the difference between the views of two branches."""
        return self._parts.comparison.diff(first, second)

    def merges(self) -> list[MergeNote]:
        """Return the merges of all branches, the oldest first."""
        return self._parts.comparison.merges()

    def merge_preview(self, source: str, target: str) -> MergePreview:
        """Return the things that `merge` would bring, and the conflicts."""
        return self._parts.comparison.merge_preview(source, target)

    def merge(
        self,
        source: str,
        target: str,
        policy: str = "manual",
        choices: Mapping[str, str] | None = None,
    ) -> MergeReport:
        """Bring new entries of one branch to another (see `BranchComparison.merge`).

        Where both changed a core key, the policy decides: `ours` keeps the target's, `theirs` takes
        the source's, `newest` the later, `importance` the more important one; `manual` writes
        nothing and names the conflicts. `choices` has policies for single keys in conflict.
        """
        report = self._parts.database.write(
            lambda writer: self._parts.comparison.merge(writer, source, target, policy, choices)
        )
        self._parts.log.add("merge", branch_id=target, details={"source": source, **asdict(report)})
        return report

    def erase(
        self,
        *,
        record_id: str | int | None = None,
        event_id: str | int | None = None,
        key: str | None = None,
        text: str | None = None,
        folders: Sequence[str | Path] = (),
        dry_run: bool = False,
    ) -> Erasure:
        """Erase a record, an event, a core key or a text from all branches and from the logs.

        With a record go all its versions and its copies; with an event its repetitions; with a key
        its values on all branches. A short text of theirs (less than 12 bytes) is found as the
        whole of a text and beside its key only; `text` is found everywhere.

        Args:
            record_id: Id of a record, on whichever branch.
            event_id: Number of an event, or of one of its repetitions.
            key: A core key.
            text: A text of at least two characters.
            folders: Folders of prompt logs; files in them that hold the text are listed.
            dry_run: Only look for it.

        Returns:
            The rows and files that were changed, and the files that were not. A target that is
            not there (any more) changes nothing; an interrupted erasure is finished.

        Raises:
            InvalidUpdate: If not exactly one of the four is given, or it is malformed.
            StoreBusy, StoreUnwritable: If the file cannot be written.
        """
        target = checked_target(record_id=record_id, event_id=event_id, key=key, text=text)
        done = self._parts.erasures.erase(target, folders, is_dry=dry_run)
        details = {"rows": done.rows, "files": len(done.files), "untouched": len(done.untouched)}
        self._parts.log.add("erase", details={**details, "dry_run": dry_run})
        return done

    def log_operation(self, op: str, branch_id: str | None = None) -> None:
        """Add a line to the operation logs for a module that works beside the memory."""
        self._parts.log.add(op, branch_id=branch_id)

    def collect_garbage(self, *, dry_run: bool = False) -> Garbage:
        """Remove rows that only pruned branches see. With `dry_run` the rows are only counted."""
        garbage = self._parts.upkeep.collect(dry_run=dry_run)
        self._parts.log.add("collect_garbage", details=asdict(garbage))
        return garbage

    def export(
        self, file: str | Path, branch_id: str | None = None, *, is_private: bool = False
    ) -> int:
        """Write the view of a branch, or everything, as JSON Lines, and return the number of rows.

        Secrets are masked unless `is_private`; then only the owner can read the file.
        """
        return self._parts.transfer.export(
            file_path("file", file), branch_id, is_private=is_private
        )

    def import_(self, file: str | Path) -> list[str]:
        """Add the branches of an export, in one transaction, and return the ids."""
        names = self._parts.transfer.import_(file_path("file", file))
        self._parts.log.add("import", details={"file": str(file), "branches": names})
        return names

    def verify(self) -> Health:
        """Check the file."""
        return self._parts.upkeep.verify()

    def backup(self, file: str | Path) -> None:
        """Copy the file in the present state, while writers go on."""
        self._parts.database.backup(file_path("file", file))

    def write_page(self, target: str | Path, *, title: str = "Memory", run_page: str = "") -> None:
        """Write the whole memory as one HTML page, with links to the page of a run."""
        from taskweaver.memory.branched.upkeep.transfer import write_page

        path = file_path("target", target)
        write_page(self._parts.database, path, title=title, run_page=run_page)
