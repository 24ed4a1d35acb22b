"""Paths in the folder of a session, which is that of a chat or of a run of the tree search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class SessionLayout:
    """Paths in the folder of a session.

    Attributes:
        memory: File of the memory.
        root: Name of the first branch.
        is_root_live: Whether later facts of the first branch are seen by the others as well.
        kernels: Folder that kernels know as the session's; code may write in parts of it.
        root_folder: Working folder of the first branch.
        inner: Name of the working folder in a branch's own folder; empty if both are the same.
    """

    memory: PurePosixPath
    root: str
    is_root_live: bool
    kernels: PurePosixPath
    root_folder: PurePosixPath
    inner: str

    @property
    def branches(self) -> PurePosixPath:
        """Folder of the branches' own folders."""
        return self.kernels / "branches"

    def working_folder(self, branch: str) -> PurePosixPath:
        """Return the working folder of a branch."""
        is_root = branch == self.root
        return self.root_folder if is_root else self.branches / branch / self.inner


_HERE, _WORKSPACES = PurePosixPath(), PurePosixPath("workspaces")
CHAT = SessionLayout(_HERE / "memory.sqlite", "main", False, _HERE, _HERE / "cwd", "cwd")
RUN = SessionLayout(
    _HERE / "memory/memory.sqlite", "root", True, _WORKSPACES, _WORKSPACES / "branches/root", ""
)


def layout_of(folder: Path) -> SessionLayout:
    """Return the layout of a session's folder."""
    return RUN if (folder / RUN.memory).exists() else CHAT
