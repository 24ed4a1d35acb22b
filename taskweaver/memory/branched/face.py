"""What every part of the face stands on."""

from __future__ import annotations

from pathlib import Path

from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import UnknownBranch
from taskweaver.memory.branched.parts import Parts


class Face:
    """The parts of a memory, its configuration and its logs.

    Attributes:
        config: Limits and switches.
        turns: What was said on its branches.
        summaries: Summaries of older rounds of its branches.
    """

    def __init__(self, parts: Parts, config: MemoryConfig) -> None:
        self.config = config
        self.turns = parts.turns
        self.summaries = parts.summaries
        self._parts = parts
        self._log = parts.log

    @property
    def folder(self) -> Path:
        """Folder the file is in."""
        return self._parts.database.path.parent

    @property
    def root_branch_id(self) -> str | None:
        """Id of the oldest root; None in an empty memory."""
        with self._parts.database.snapshot() as connection:
            root = self._parts.branches.root(connection)
        return None if root is None else root.id

    def _at_home(self, branch_id: str | None) -> str:
        """Return a branch id, by default the root's.

        Raises:
            UnknownBranch: If there is no branch at all.
        """
        home = self.root_branch_id if branch_id is None else branch_id
        if home is None:
            raise UnknownBranch("The memory is empty: make a branch with create_branch(None).")
        return home
