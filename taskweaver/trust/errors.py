"""Errors about trust in project folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taskweaver.errors import TaskWeaverError

_MOST_NAMED = 5


@dataclass(eq=False, repr=False)
class ProjectNotTrusted(TaskWeaverError):
    """Opening the folder would run or loosen something without the user's consent.

    Attributes:
        folder: The folder.
        lines: The effects without the user's consent.
    """

    folder: str
    lines: Sequence[str]

    def __str__(self) -> str:
        """The effects, and the ways to decide."""
        more = len(self.lines) - _MOST_NAMED
        named = [*self.lines[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
        return (
            f"{self.folder} is not trusted. It runs, sends or loosens: {'; '.join(named)}."
            " If you trust it: taskweaver --trust, before the command; --no-trust opens it without"
            " these. In Python: TaskWeaverApp(..., trust=True or False)."
        )


@dataclass(eq=False, repr=False)
class ForeignProject(TaskWeaverError):
    """The configuration file belongs to another user."""

    file: str
    owner: str

    def __str__(self) -> str:
        """Which file, and the ways to go on."""
        return (
            f"{self.file} belongs to another user, {self.owner}, and is not used."
            " Copy the folder, or use taskweaver --trust, before the command, if you trust that"
            " user with your files and keys."
        )
