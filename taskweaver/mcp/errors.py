"""What can go wrong with an MCP server. Nothing of it ends a conversation."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class ServerFailed(TaskWeaverError):
    """A server, or a tool of it, cannot be used.

    Attributes:
        server: Its name in the configuration.
        problem: What is wrong.
    """

    def __init__(self, server: str, problem: str) -> None:
        super().__init__(server, problem)
        self.server = server
        self.problem = problem

    def __str__(self) -> str:
        """Which server, and what is wrong."""
        return f"MCP server {self.server!r}: {self.problem}"


class ToolFailed(TaskWeaverError):
    """A tool says that it failed, or cannot be called like this.

    Attributes:
        kind: Type of the error in a span.
    """

    kind = "tool_error"
