"""What can go wrong with a stored conversation."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class ConversationError(TaskWeaverError):
    """A stored conversation cannot be read or written.

    Attributes:
        source: The file, or what else was being read.
        problem: What is wrong with it.
    """

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(source, problem)
        self.source = source
        self.problem = problem

    def __str__(self) -> str:
        """What happened, and where."""
        return f"The conversation in {self.source} cannot be used: {self.problem}"


class SubPathRefused(ConversationError):
    """A sub-path does not name a folder inside the folder it belongs to."""

    def __str__(self) -> str:
        """What happened, and where."""
        return f"The sub-path {self.source!r} cannot be used: {self.problem}"
