"""The tools of one session: shown to models, called by the kernel, allowed by the user."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from taskweaver.mcp.errors import ServerFailed, ToolFailed
from taskweaver.mcp.servers import MCPServers
from taskweaver.mcp.tools import Tool
from taskweaver.module.confirmation import ConfirmationRequest, Confirmations, NotConfirmed
from taskweaver.plugin.spec import PluginEntry
from taskweaver.utils.text import shorten, shorten_words

_MAX_ARGUMENT_CHARS = 2_000
_MAX_LINE_CHARS = 160
_MAX_REQUEST_CHARS = 20_000


class SessionTools:
    """Functions a kernel may call, as `ces.hostcalls.HostFunctions`.

    Attributes:
        post_id: The post whose code is running, for questions to the user.
        is_rebuilding: Whether cells run that ran before. Calls that may change something are then
            confirmed, whatever the configuration: their effect would happen twice.
    """

    def __init__(
        self, servers: MCPServers, confirmations: Confirmations, confirmation_timeout_s: float
    ) -> None:
        self._servers = servers
        self._confirmations = confirmations
        self._timeout_s = confirmation_timeout_s
        self._told: set[str] = set()
        self.post_id = ""
        self.is_rebuilding = False

    def begin(self) -> None:
        """Start the servers in the background."""
        self._servers.begin()

    def entries(self, taken: Container[str]) -> list[PluginEntry]:
        """Return the functions, for prompts and the kernel. Waits for servers that are starting.

        A tool whose name is `taken`, by a plugin, is left out.
        """
        tools = self._servers.offer().tools
        return [tool.entry for name, tool in sorted(tools.items()) if name not in taken]

    def new_problems(self, taken: Container[str]) -> list[str]:
        """Return, once each, a sentence for each server or tool that cannot be used."""
        offer = self._servers.offer()
        hidden = [
            ServerFailed(tool.server, f"the tool {tool.name!r} is left out: a plugin is {name}.")
            for name, tool in offer.tools.items()
            if name in taken
        ]
        found = [str(problem) for problem in (*offer.problems, *hidden)]
        new = [text for text in found if text not in self._told]
        self._told.update(new)
        return new

    def permit(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return why a call may not go ahead. Asks the user where that is configured."""
        tool = self._tool(name)
        if tool is None:
            return "the tool does not exist."
        is_repeated = self.is_rebuilding and not tool.is_read_only
        change = self._servers.known.change(tool)
        if not tool.is_confirmed and not is_repeated and change is None:
            return ""
        given = ", ".join(
            f"{key}={shorten(repr(value), _MAX_ARGUMENT_CHARS)}" for key, value in arguments.items()
        )
        kinds, content = frozenset({f"tool {name}"}), f"{name}({given})"
        if change is not None:
            self._confirmations.forget(kinds)
            content += f"\nThis tool changed since it was allowed. Its description now: {change}"
        request = ConfirmationRequest(
            kinds, shorten(content, _MAX_REQUEST_CHARS), post_id=self.post_id
        )
        try:
            if self._confirmations.ask(request, self._timeout_s):
                if change is not None:
                    self._servers.known.allow(tool)
                return ""
        except NotConfirmed as error:
            return str(error)
        return "the user did not allow this call. Do not repeat it."

    def call(self, name: str, arguments: Mapping[str, Any]) -> Future[Any]:
        """Begin a call."""
        tool = self._tool(name)
        if tool is None:
            refused: Future[Any] = Future()
            refused.set_exception(ToolFailed("the tool does not exist."))
            return refused
        return self._servers.call(tool, arguments)

    def _tool(self, name: str) -> Tool | None:
        return self._servers.offer().tools.get(name)


def intro_of(entries: Iterable[PluginEntry]) -> str:
    """Return the tools for a planning role: a line for each, or an empty text."""
    lines = [
        f"  - {entry.name}: {shorten_words(entry.spec.description, _MAX_LINE_CHARS)}"
        for entry in entries
    ]
    return "\n".join(["- Its code can also call these tools:", *lines]) if lines else ""
