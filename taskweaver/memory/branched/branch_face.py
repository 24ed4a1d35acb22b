"""Branches, as `MemoryManager` offers them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from taskweaver.memory.branched.compare import Difference, Step
from taskweaver.memory.branched.face import Face
from taskweaver.memory.branched.types import Branch, MergeReport
from taskweaver.memory.branched.upkeep import Garbage, Health


class BranchFace(Face):
    """Forks, compares, joins, ends and carries branches."""

    @property
    def seq(self) -> int:
        """Number of the newest row; `at=` takes such numbers."""
        with self._parts.database.snapshot() as connection:
            return self._parts.database.now_seq(connection)

    def branches(self) -> list[Branch]:
        """Return every branch, parents before children."""
        with self._parts.database.snapshot() as connection:
            return self._parts.branches.all(connection)

    def branch(self, branch_id: str) -> Branch:
        """Return a branch.

        Raises:
            UnknownBranch: If there is none with this id or node uid.
        """
        with self._parts.database.snapshot() as connection:
            return self._parts.branches.find(connection, branch_id)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return how much each branch wrote itself: core rows, events, archival rows."""
        return self._parts.upkeep.counts()

    def create_branch(
        self,
        parent_branch_id: str | None,
        node_uid: str | None = None,
        branch_id: str | None = None,
        *,
        live: bool = False,
    ) -> str:
        """Make a branch, or with no parent a root, and return its id.

        Args:
            parent_branch_id: The parent; it is seen as it is now.
            node_uid: Another name of the branch.
            branch_id: Its id; None makes one up.
            live: Whether its later writes are seen by its descendants.

        Raises:
            UnknownBranch: If there is no such parent.
            InvalidUpdate: If the id is taken or malformed.
        """
        made = self._parts.branches.create(
            parent_branch_id, branch_id or "", node_uid=node_uid, live=live
        )
        self._log.add("create_branch", branch_id=made.id, details={"parent": parent_branch_id})
        return made.id

    def fork(
        self, parent: str, name: str = "", *, at: int | None = None, live: bool = False
    ) -> str:
        """Make a branch that sees a parent as it is, or as it was at a row; return its id.

        Raises:
            UnknownBranch: If there is no such parent.
            BranchSealed: If the parent was pruned.
            InvalidUpdate: If the name is taken or malformed, or `at` lies in the future.
        """
        made = self._parts.branches.create(parent, name, at=at, live=live)
        self._log.add("fork", branch_id=made.id, details={"parent": parent, "at": at})
        return made.id

    def update_branch_node_uid(self, branch_id: str, node_uid: str) -> None:
        """Give a branch another name.

        Raises:
            UnknownBranch: If there is no such branch.
        """
        branches = self._parts.branches
        self._parts.database.write(
            lambda writer: branches.set_node_uid(
                writer, branches.find(writer.connection, branch_id), node_uid
            )
        )

    def history(self, branch_id: str | None = None, *, limit: int = 100) -> list[Step]:
        """Return what was written to a branch itself, newest first."""
        return self._parts.comparison.history(self._at_home(branch_id), limit=limit)

    def diff(self, first: str, second: str) -> Difference:
        """Return how the views of two branches differ."""
        return self._parts.comparison.diff(first, second)

    def promote(self, record: str | int, to: str, *, branch_id: str) -> str:
        """Copy a core key (a text) or an archival record (a number) to another branch.

        Returns:
            The key, or the id of the copy.

        Raises:
            RecordNotVisible: If the branch sees no such key or record.
            UnknownBranch, BranchSealed: If the target takes no writes.
        """
        result = self._parts.database.write(
            lambda writer: self._parts.comparison.promote(writer, branch_id, record, to)
        )
        self._log.add("promote", branch_id=branch_id, details={"record": record, "to": to})
        return result

    def merge(self, source: str, target: str, policy: str = "manual") -> MergeReport:
        """Bring what one branch learnt to another; see `Comparison.merge` for the policies."""
        report = self._parts.database.write(
            lambda writer: self._parts.comparison.merge(writer, source, target, policy)
        )
        self._log.add("merge", branch_id=target, details={"source": source, **asdict(report)})
        return report

    def seal(self, branch_id: str) -> None:
        """Take no more writes on a branch; it can still be read and forked."""
        self._parts.upkeep.set_state(branch_id, "sealed")
        self._log.add("seal", branch_id=branch_id)

    def prune(self, branch_id: str, *, subtree: bool = True) -> list[str]:
        """Give a branch up, with all below it, and return the ids.

        Their rows go with the next collection of garbage.
        """
        pruned = self._parts.upkeep.set_state(branch_id, "pruned", subtree=subtree)
        self._log.add("prune", branch_id=branch_id, details={"branches": len(pruned)})
        return pruned

    def collect_garbage(self, *, dry_run: bool = False) -> Garbage:
        """Remove what only pruned branches see, or only say what that would be."""
        garbage = self._parts.upkeep.collect(dry_run=dry_run)
        self._log.add("collect_garbage", details=asdict(garbage))
        return garbage

    def export(
        self, file: str | Path, branch_id: str | None = None, *, is_private: bool = False
    ) -> int:
        """Write a branch with all it sees (None: everything) as JSON Lines; return the rows.

        Secrets are masked unless `is_private`; then only the owner can read the file.
        """
        return self._parts.transfer.export(Path(file), branch_id, is_private=is_private)

    def import_(self, file: str | Path) -> list[str]:
        """Add the branches of an export, all or none; return their ids."""
        return self._parts.transfer.import_(Path(file))

    def verify(self) -> Health:
        """Check the file."""
        return self._parts.upkeep.verify()

    def backup(self, file: str | Path) -> None:
        """Copy the file as it is now, while others write."""
        self._parts.database.backup(Path(file))
