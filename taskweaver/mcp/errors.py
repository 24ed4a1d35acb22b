"""Errors of MCP servers, which never end a conversation."""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.errors import TaskWeaverError


@dataclass(eq=False, repr=False)
class ServerFailed(TaskWeaverError):
    """A server, or a tool of a server, cannot be used."""

    server: str
    problem: str

    def __str__(self) -> str:
        return f"MCP server {self.server!r}: {self.problem}"


class ToolFailed(TaskWeaverError):
    """A tool reports a failure, or cannot be called like this.

    Attributes:
        kind: Type of the error in a span.
    """

    kind = "tool_error"
