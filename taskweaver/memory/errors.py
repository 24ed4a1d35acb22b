"""Errors of stored conversations."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class ConversationError(TaskWeaverError):
    """A stored conversation cannot be read or written.

    Attributes:
        source: The file, or another source.
        problem: The problem in it.
    """

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(source, problem)
        self.source = source
        self.problem = problem

    def __str__(self) -> str:
        """Return the problem and its place."""
        return f"The conversation in {self.source} cannot be used: {self.problem}"


class SubPathRefused(ConversationError):
    """A sub-path does not name a folder inside the folder it belongs to."""

    def __str__(self) -> str:
        """Return the problem and its place."""
        return f"The sub-path {self.source!r} cannot be used: {self.problem}"
