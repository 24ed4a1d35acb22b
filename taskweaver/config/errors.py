"""Errors of a configuration."""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.errors import TaskWeaverError


@dataclass(eq=False, repr=False)
class ConfigError(TaskWeaverError):
    """A configuration cannot be read, or a value cannot be used.

    Attributes:
        key: The key in question, or the file when no single key is.
        problem: The fault.
        remedy: The remedy; empty when the problem says so itself.
    """

    key: str
    problem: str
    remedy: str = ""

    def __str__(self) -> str:
        """The key, the problem and the remedy."""
        return f"{self.key}: {self.problem} {self.remedy}".strip()
