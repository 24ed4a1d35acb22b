"""Paths in the folder of a session, which is that of a chat or of a run of the tree search."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

WORKING = "cwd"
"""Name of a working folder."""
NODES = PurePosixPath("workspaces/branches")
"""Folder of the workspaces of a run's nodes."""


@dataclass(frozen=True, slots=True)
class SessionLayout:
    """Paths in the folder of a session.

    Attributes:
        memory: File of the memory.
        root: Name of the first branch.
        is_root_live: Whether later facts of the first branch are seen by the others as well.
        kernels: Folder that kernels know as the session's; code may write in parts of it.
        nodes: Pattern of the branches of nodes; its first group is the id of the node.
    """

    memory: PurePosixPath
    root: str
    is_root_live: bool
    kernels: PurePosixPath
    nodes: re.Pattern[str] | None = None

    @property
    def branches(self) -> PurePosixPath:
        """Folder of the branches' own folders."""
        return self.kernels / "branches"

    def working_folder(self, branch: str) -> PurePosixPath:
        """Return the working folder of a branch; that of a node is the node's workspace."""
        if branch == self.root:
            return self.kernels / WORKING
        node = self.nodes and self.nodes.fullmatch(branch)
        if node:  # repeated attempts have branches of their own, and one workspace
            return NODES / node[1]
        return self.branches / branch / WORKING

    def is_of_search(self, branch: str) -> bool:
        """Return whether only a search goes on with a branch: chats go on with forks of it."""
        if self.nodes is None:
            return False
        return branch == self.root or self.nodes.fullmatch(branch) is not None


_HERE = PurePosixPath()
CHAT = SessionLayout(_HERE / "memory.sqlite", "main", False, _HERE)
# Kernels of chats write below a folder of their own: a node's workspace stays as it is.
RUN = SessionLayout(
    _HERE / "memory/memory.sqlite",
    "root",
    True,
    _HERE / "chats",
    re.compile(r"(n\d+)(?:-\d+)?"),
)


def layout_of(folder: Path) -> SessionLayout:
    """Return the layout of a session's folder."""
    return RUN if (folder / RUN.memory).exists() else CHAT
