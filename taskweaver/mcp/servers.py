"""The MCP servers of an application, in one thread with an event loop.

Tools are remembered as they were when they were first offered: a server may describe a tool as
harmless until it is allowed, and otherwise afterwards. A tool that changed is asked about again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from taskweaver.logging.spans import ARGUMENTS, RESULT, mcp_call
from taskweaver.logging.tracing import Tracing
from taskweaver.mcp.config import ServerConfig
from taskweaver.mcp.connection import Connection
from taskweaver.mcp.errors import ServerFailed, ToolFailed
from taskweaver.mcp.tools import RawTool, Tool, function_name, make_tools, parts_of
from taskweaver.utils.files import PRIVATE, read_json, write_text
from taskweaver.utils.system.installation import install_command

_MOST_BYTES = 4 << 20


class KnownTools:
    """Fingerprints of tools: allowed before, and offered now."""

    def __init__(self, path: Path | None) -> None:
        """Read the file. Without one the fingerprints are kept as long as this object."""
        self._path = path
        self._lock = threading.Lock()
        self._allowed = _read(path)
        self._offered: dict[str, tuple[str, str]] = {}

    def offer(self, server: str, tools: Iterable[RawTool]) -> None:
        """Take the list of a server. A tool that was never listed counts as allowed."""
        with self._lock:
            for tool in tools:
                key = _key(server, tool.name)
                self._offered[key] = (_fingerprint(tool), tool.description)
                self._allowed.setdefault(key, self._offered[key][0])
            self._save()

    def change(self, tool: Tool) -> str | None:
        """Return the new description of a tool that changed since the consent, else None."""
        key = _key(tool.server, tool.name)
        with self._lock:
            found = self._offered.get(key)
            if found is None or self._allowed.get(key) == found[0]:
                return None
            return found[1]

    def allow(self, tool: Tool) -> None:
        """Allow a tool as offered now."""
        key = _key(tool.server, tool.name)
        with self._lock:
            self._allowed[key] = self._offered[key][0]
            self._save()

    def _save(self) -> None:
        if self._path is not None:
            text = json.dumps(self._allowed, indent=1, sort_keys=True)
            write_text(self._path, text + "\n", mode=PRIVATE)


def _key(server: str, tool: str) -> str:
    return f"{server}: {tool}"


def _read(path: Path | None) -> dict[str, str]:
    try:
        data = read_json(path, _MOST_BYTES) if path else None
    except (OSError, ValueError):
        data = None
    known = data if isinstance(data, dict) else {}
    return {str(name): str(value) for name, value in known.items()}


def _fingerprint(tool: RawTool) -> str:
    values = [getattr(tool, field.name) for field in fields(tool)]
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


_END_WAIT_S = 2.0
_KNOWN_FILE = "mcp_tools.json"


@dataclass(slots=True)
class Offer:
    """Tools of the servers.

    Attributes:
        tools: The tools that can be called, by the name of their function.
        problems: Servers and tools that cannot be used, with the reasons.
    """

    tools: dict[str, Tool] = field(default_factory=dict)
    problems: list[ServerFailed] = field(default_factory=list)


class MCPServers:
    """The servers of an application. The first `begin` starts all. Needs `close`.

    Attributes:
        known: The tools that were allowed, and those that are offered now.
    """

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        log_folder: Path | None = None,
        tracing: Tracing | None = None,
        known: KnownTools | None = None,
    ) -> None:
        """Prepare the servers. Nothing runs yet."""
        self._configs = tuple(configs)
        self._tracing = tracing or Tracing()
        self._log_folder = log_folder
        self.known = known or KnownTools(log_folder / _KNOWN_FILE if log_folder else None)
        self._lock = threading.Lock()
        self._offer: Future[Offer] | None = None
        self._connections: dict[str, Connection] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def with_others(self, configs: Iterable[ServerConfig]) -> MCPServers:
        """Return the same servers for one session, not started, with others beside them.

        Of several that have the same name, the first counts, and those of the configuration do.
        """
        named = {config.name: config for config in reversed((*self._configs, *configs))}
        both = (*reversed(named.values()),)
        return MCPServers(both, self._log_folder, self._tracing, self.known)

    @property
    def names(self) -> list[str]:
        """The servers that are configured."""
        return [config.name for config in self._configs]

    def begin(self) -> Future[Offer]:
        """Start all servers in the background, once. The result is there when all have answered."""
        with self._lock:
            if self._offer is None:
                self._offer = self._started()
            return self._offer

    def offer(self) -> Offer:
        """Return the tools of the servers, after all starts."""
        return self.begin().result()

    def _started(self) -> Future[Offer]:
        known: Future[Offer] = Future()
        if not self._configs or self._is_closed:
            known.set_result(Offer())
            return known
        if find_spec("mcp") is None:
            why = f"it needs the package mcp: {install_command('mcp')}"
            known.set_result(Offer({}, [ServerFailed(", ".join(self.names), why)]))
            return known
        # What the package logs of broken servers is told in our words; not on the terminal too.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="mcp-servers", daemon=True
        )
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._start_all(), self._loop)

    async def _start_all(self) -> Offer:
        for config in self._configs:
            self._connections[config.name] = Connection(
                config,
                self._log_path(config),
                self._tracing,
                partial(self.known.offer, config.name),
            )
        starts = (connection.start() for connection in self._connections.values())
        answers = await asyncio.gather(*starts, return_exceptions=True)
        offer, taken = Offer(), set[str]()
        for config, answer in zip(self._configs, answers, strict=True):
            if isinstance(answer, ServerFailed):
                offer.problems.append(answer)
            elif isinstance(answer, BaseException):
                why = f"it does not start: {type(answer).__name__}: {answer}"
                offer.problems.append(ServerFailed(config.name, why))
            else:
                tools, problems = make_tools(config, answer, taken)
                offer.tools |= {tool.function: tool for tool in tools}
                offer.problems += problems
        return offer

    def _log_path(self, config: ServerConfig) -> Path | None:
        if self._log_folder is None:
            return None
        self._log_folder.mkdir(parents=True, exist_ok=True)
        return self._log_folder / f"{function_name('mcp', config.name)}.log"

    def call(self, tool: Tool, arguments: Mapping[str, Any]) -> Future[Any]:
        """Begin a call with the parts of `parts_of` as the result.

        Its result raises `ToolFailed` or `ServerFailed` where it fails.
        """
        if self._loop is None or self._is_closed:
            refused: Future[Any] = Future()
            refused.set_exception(ServerFailed(tool.server, "it was stopped."))
            return refused
        return asyncio.run_coroutine_threadsafe(self._call(tool, arguments), self._loop)

    async def _call(self, tool: Tool, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        connection = self._connections[tool.server]
        with self._tracing.running(mcp_call(tool.name, connection.attributes)) as span:
            span.content(ARGUMENTS, lambda: json.dumps(dict(arguments), default=str))
            await connection.list_again()
            if self.known.change(tool) is not None:
                raise ToolFailed("it changed since it was allowed; call it again to ask for it.")
            check_arguments(tool, arguments)
            parts = parts_of(await connection.call(tool.name, arguments), tool)
            span.content(RESULT, lambda: json.dumps(parts, default=str))
            return parts

    def close(self) -> None:
        """End all servers with all processes. Safe to call again."""
        with self._lock:
            self._is_closed = True
            loop, thread = self._loop, self._thread
            self._thread = None
        if loop is None or thread is None:
            return
        with suppress(RuntimeError):  # a call that was cancelled meanwhile
            asyncio.run_coroutine_threadsafe(self._close_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    async def _close_all(self) -> None:
        closing = (connection.close() for connection in self._connections.values())
        await asyncio.gather(*closing, return_exceptions=True)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=_END_WAIT_S)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()
        await asyncio.get_running_loop().shutdown_default_executor()


def check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Check the names of arguments. Their values are for the server to check.

    Raises:
        ToolFailed: If the tool does not have one of them; names those it takes.
    """
    known = tool.schema.get("properties")
    if isinstance(known, Mapping) and not tool.schema.get("additionalProperties"):
        unknown = sorted(set(arguments) - set(known))
        if unknown:
            takes = ", ".join(known) or "none"
            raise ToolFailed(f"it has no argument {', '.join(unknown)}; it takes {takes}.")
