"""What can go wrong with a project folder."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class ProjectError(TaskWeaverError):
    """The folder is not a project, or cannot become one.

    Attributes:
        folder: The folder.
        problem: What is wrong, and what to do.
    """

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(folder, problem)
        self.folder = folder
        self.problem = problem

    def __str__(self) -> str:
        """What happened, and what to do."""
        return f"{self.folder}: {self.problem}"
