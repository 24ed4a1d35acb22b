"""Errors of a configuration."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class ConfigError(TaskWeaverError):
    """A configuration cannot be read, or a value in it cannot be used.

    Attributes:
        key: The key in question, or the file when no single key is.
        problem: The fault.
        remedy: The remedy; empty when the problem says so itself.
    """

    def __init__(self, key: str, problem: str, remedy: str = "") -> None:
        super().__init__(key, problem, remedy)
        self.key = key
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        """The key, the problem and the remedy."""
        return f"{self.key}: {self.problem} {self.remedy}".strip()
