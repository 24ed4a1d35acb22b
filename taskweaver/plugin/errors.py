"""What can go wrong with a plugin."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class PluginError(TaskWeaverError):
    """A plugin cannot be read, loaded or called.

    Attributes:
        plugin: Its name, or the file that describes it.
        problem: What is wrong.
    """

    def __init__(self, plugin: str, problem: str) -> None:
        super().__init__(plugin, problem)
        self.plugin = plugin
        self.problem = problem

    def __str__(self) -> str:
        """Which plugin, and what is wrong."""
        return f"Plugin {self.plugin}: {self.problem}"


class HostCallFailed(PluginError):
    """A function of the application cannot be called from the kernel, or fails."""

    def __str__(self) -> str:
        """Which function, and what is wrong."""
        return f"{self.plugin}: {self.problem}"
