"""Errors of a project folder."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class ProjectError(TaskWeaverError):
    """The folder is not a project, or cannot become one."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(folder, problem)
        self.folder = folder
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.folder}: {self.problem}"
