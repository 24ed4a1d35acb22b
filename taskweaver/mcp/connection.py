"""One server: started or reached, asked for tools, called, and ended with all processes.

Everything here happens in one event loop, see `servers`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from taskweaver.ces.environment import KERNEL_MARK
from taskweaver.ces.process.marked import kill_marked
from taskweaver.logging.tracing import Tracing
from taskweaver.mcp.config import ServerConfig
from taskweaver.mcp.errors import ServerFailed
from taskweaver.mcp.tools import RawTool
from taskweaver.utils.ids import create_id
from taskweaver.utils.markup.characters import without_steering
from taskweaver.utils.system.network import tls_context
from taskweaver.utils.text import shorten

_MAX_TOOLS = 500
_MAX_REASON_CHARS = 300
_MAX_GARBAGE_CHARS = 80
_TAIL_BYTES = 4096
_READ_S = 300.0

T = TypeVar("T")


class Connection:
    """A server that is started once more after a death. Needs `close`."""

    def __init__(
        self,
        config: ServerConfig,
        log_path: Path | None,
        tracing: Tracing | None = None,
        listed: Callable[[list[RawTool]], None] = lambda _: None,
    ) -> None:
        """Prepare the server. Nothing runs yet.

        `listed` is called with its tools whenever they are listed.
        """
        self._config = config
        self._tracing = tracing or Tracing()
        self._log_path = log_path or Path(os.devnull)
        self._id = create_id("mcp")
        self._lock = asyncio.Lock()
        self._client: Any = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._garbage = ""
        self._listed = listed
        self._is_list_stale = False
        self._restarts_left = 1

    @property
    def attributes(self) -> Mapping[str, str | int]:
        """Attributes of a call's span that describe the transport."""
        if not self._config.url:
            return {"network.transport": "pipe"}
        parts = urlsplit(self._config.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        host = parts.hostname or ""
        return {"network.transport": "tcp", "server.address": host, "server.port": port}

    async def start(self) -> list[RawTool]:
        """Start the server, and return the tools.

        Raises:
            ServerFailed: If it does not come up in time.
        """
        self._stopping = asyncio.Event()
        started: asyncio.Future[list[RawTool]] = asyncio.get_running_loop().create_future()
        log_size = self._log_path.stat().st_size if self._log_path.is_file() else 0

        def give_up(_: object) -> None:
            if not started.done():
                started.set_exception(self._failure("it was closed."))

        self._task = asyncio.create_task(self._live(started))
        self._task.add_done_callback(give_up)
        try:
            tools = await started
        except TimeoutError:
            late = f"it did not answer within {self._config.timeout_s:g} s"
            printed = f"; it printed what is no message: {self._garbage}" if self._garbage else ""
            raise self._failure(f"{late}{printed}.") from None
        except ServerFailed:
            raise
        except FileNotFoundError as error:
            raise self._failure(f"{str(error.filename)!r} is not there.") from error
        except Exception as error:
            said = self._last_line(log_size) or _reason(error)
            raise self._failure(f"it does not start: {said}") from error
        self._listed(tools)
        return tools

    def _failure(self, problem: str) -> ServerFailed:
        return ServerFailed(self._config.name, problem)

    async def list_again(self) -> None:
        """List the tools once more after a reported change."""
        if self._client is not None and self._is_list_stale:
            self._is_list_stale = False
            self._listed(await self._answer(_tools_of(self._client), "the list of its tools"))

    async def _live(self, started: asyncio.Future[list[RawTool]]) -> None:
        """Hold the connection open, in an own task, until `close`."""
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._config.timeout_s):
                    client = await stack.enter_async_context(self._made())
                    tools = await _tools_of(client)
                started.set_result(tools)
                self._client = client
                await self._stopping.wait()
        except Exception as error:  # noqa: BLE001 - whatever it is, `start` tells it
            if not started.done():
                started.set_exception(_leaf(error))
        finally:
            if self._config.command:
                await asyncio.to_thread(kill_marked, self._id)

    @asynccontextmanager
    async def _made(self) -> AsyncIterator[Any]:
        from mcp import Client, Implementation

        from taskweaver import __version__

        info = Implementation(name="taskweaver", version=__version__)
        async with (
            self._transport() as transport,
            Client(transport, client_info=info, message_handler=self._take, cache=None) as client,
        ):
            yield client

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        config = self._config
        if config.url:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            limits = httpx2.Timeout(config.timeout_s, read=max(_READ_S, config.timeout_s))
            async with httpx2.AsyncClient(
                headers=dict(config.headers or {}),
                timeout=limits,
                verify=tls_context(),
                event_hooks={"request": [self._add_context]},
            ) as http:
                yield streamable_http_client(config.url, http_client=http)
            return
        from mcp.client.stdio import StdioServerParameters, stdio_client

        env = {**(config.env or {}), KERNEL_MARK: self._id}
        path = env.get("PATH", os.environ.get("PATH"))
        command = shutil.which(config.command, path=path)
        if command is None:
            raise FileNotFoundError(2, "not found", config.command)
        with self._log_path.open("a", encoding="utf-8") as log:
            program = StdioServerParameters(
                command=command,
                args=[*config.args],
                env=env,
                cwd=config.cwd,
                encoding_error_handler="replace",
            )
            yield stdio_client(program, log)

    async def _add_context(self, request: Any) -> None:
        self._tracing.inject(request.headers)

    async def _take(self, message: object) -> None:
        """Record a change of the tools, and output of a server that is no message."""
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._is_list_stale = True
        if isinstance(message, Exception):
            from pydantic import ValidationError

            text = message.errors()[0]["input"] if isinstance(message, ValidationError) else message
            self._garbage = repr(shorten(str(text), _MAX_GARBAGE_CHARS))

    def _last_line(self, since: int) -> str:
        """Return the last line a server printed as an error."""
        if not self._log_path.is_file():
            return ""
        with self._log_path.open("rb") as log:
            log.seek(max(since, self._log_path.stat().st_size - _TAIL_BYTES))
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
        return shorten(without_steering(lines[-1].strip()), _MAX_REASON_CHARS) if lines else ""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool, and return a result of the package `mcp`.

        Raises:
            ServerFailed: If it does not answer in time, dies, or its answer is not a result.
        """
        if self._client is None:
            raise self._failure("it has ended; the next session starts it again.")
        return await self._answer(self._client.call_tool(tool, dict(arguments)), tool)

    async def _answer(self, request: Awaitable[T], asked: str) -> T:
        """Return the answer to a request.

        Raises:
            ServerFailed: If there is none in time, or it is none.
        """
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        client = self._client
        try:
            async with asyncio.timeout(self._config.timeout_s):
                return await request
        except TimeoutError:
            late = f"{asked} did not answer within {self._config.timeout_s:g} s (timeout_s)."
            raise self._failure(late) from None
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise self._failure(await self._revived(client, asked)) from error
            raise self._failure(f"{asked}: {_reason(error)}") from error
        except Exception as error:
            raise self._failure(f"{asked} gave no usable result: {_reason(error)}") from error

    async def _revived(self, client: Any, tool: str) -> str:
        """Restart a server that has died, and return a sentence about the outcome."""
        async with self._lock:
            if self._client is client:
                await self.close()
                if self._restarts_left == 0:
                    return f"it ended while {tool} was called, and stays off: it did so before."
                self._restarts_left -= 1
                try:
                    await self.start()
                except ServerFailed as error:
                    return f"it ended while {tool} was called, and {error.problem}"
        return (
            f"it ended while {tool} was called, and was started again. Call again if it does no "
            f"harm twice."
        )

    async def close(self) -> None:
        """End the server with all processes. Safe to call again."""
        was_up = self._client is not None
        self._client = None
        task, self._task = self._task, None
        self._stopping.set()
        if task is not None:
            if not was_up:
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _tools_of(client: Any) -> list[RawTool]:
    found: list[RawTool] = []
    cursor = None
    while len(found) < _MAX_TOOLS:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            about = tool.description or tool.title or ""
            hints = tool.annotations
            is_read_only = hints is not None and bool(hints.read_only_hint)
            schemas = (tool.input_schema, tool.output_schema)
            found.append(RawTool(tool.name, about, *schemas, is_read_only))
        cursor = page.next_cursor
        if not cursor or not page.tools:
            break
    return found[:_MAX_TOOLS]


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason(error: BaseException) -> str:
    leaf = _leaf(error)
    return shorten(without_steering(str(leaf)), _MAX_REASON_CHARS) or type(leaf).__name__
