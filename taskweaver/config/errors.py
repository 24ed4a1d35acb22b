"""What can go wrong with a configuration."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class ConfigError(TaskWeaverError):
    """A configuration cannot be read, or a value in it cannot be used.

    Attributes:
        key: The key in question, or the file when no single key is.
        problem: What is wrong.
        remedy: What to do about it; empty when the problem says so itself.
    """

    def __init__(self, key: str, problem: str, remedy: str = "") -> None:
        super().__init__(key, problem, remedy)
        self.key = key
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        """Which key, what happened, and what to do."""
        return f"{self.key}: {self.problem} {self.remedy}".strip()
