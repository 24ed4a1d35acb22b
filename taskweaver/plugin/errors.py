"""Errors of plugins."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class PluginError(TaskWeaverError):
    """A plugin cannot be read, loaded or called.

    Attributes:
        plugin: Its name, or the file that describes it.
        problem: The problem.
    """

    def __init__(self, plugin: str, problem: str) -> None:
        super().__init__(plugin, problem)
        self.plugin = plugin
        self.problem = problem

    def __str__(self) -> str:
        return f"Plugin {self.plugin}: {self.problem}"


class HostCallFailed(PluginError):
    """A function of the application cannot be called from the kernel, or fails."""

    def __str__(self) -> str:
        return f"{self.plugin}: {self.problem}"
