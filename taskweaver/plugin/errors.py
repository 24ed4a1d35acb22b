"""Errors of plugins."""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.errors import TaskWeaverError


@dataclass(eq=False, repr=False)
class PluginError(TaskWeaverError):
    """A plugin cannot be read, loaded or called.

    Attributes:
        plugin: Its name, or the file that describes it.
        problem: The problem.
    """

    plugin: str
    problem: str

    def __str__(self) -> str:
        return f"Plugin {self.plugin}: {self.problem}"


class HostCallFailed(PluginError):
    """A function of the application cannot be called from the kernel, or fails."""

    def __str__(self) -> str:
        return f"{self.plugin}: {self.problem}"
