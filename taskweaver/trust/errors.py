"""Errors about trust in project folders."""

from __future__ import annotations

from collections.abc import Sequence

from taskweaver.errors import TaskWeaverError
from taskweaver.trust.finding import Finding

_MOST_NAMED = 5


class ProjectNotTrusted(TaskWeaverError):
    """Opening the folder would run or loosen something, and the user has not agreed to it.

    Attributes:
        findings: The effects without the user's consent.
    """

    def __init__(self, folder: str, findings: Sequence[Finding]) -> None:
        super().__init__(folder, findings)
        self.folder = folder
        self.findings = tuple(findings)

    def __str__(self) -> str:
        """The effects, and the ways to decide."""
        effects = " ".join(item.sentence for item in self.findings[:_MOST_NAMED])
        more = len(self.findings) - _MOST_NAMED
        if more > 0:
            effects += f" And {more} more."
        return (
            f"{self.folder} is not trusted. Opening it would: {effects}"
            " If you trust it: taskweaver --trust, before the command; --no-trust opens it without"
            " these. In Python: TaskWeaverApp(..., trust=True or False)."
        )


class ForeignProject(TaskWeaverError):
    """The configuration file belongs to another user."""

    def __init__(self, file: str, owner: str) -> None:
        super().__init__(file, owner)
        self.file = file
        self.owner = owner

    def __str__(self) -> str:
        """Which file, and the ways to go on."""
        return (
            f"{self.file} belongs to another user, {self.owner}, and is not used."
            " Copy the folder, or use taskweaver --trust, before the command, if you trust that"
            " user with your files and keys."
        )
