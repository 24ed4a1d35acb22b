"""A server that is a program: its start, its bounded lines, and its end.

The transport of the package `mcp` buffers a program's output until a line ends, however long it
grows; this one bounds it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

from taskweaver.mcp.flow import MOST_MESSAGE_BYTES, Flow, FlowExceeded

_END_WAIT_S = 2.0


@asynccontextmanager
async def program_transport(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None,
    log: IO[str],
    broken: Callable[[str], None],
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a program; yield the streams of its messages, for a session of the package `mcp`.

    `env` is beside the few variables that any program needs. `broken` is called with the reason
    when its messages exceed a bound; it is then ended.
    """
    import anyio
    from mcp.client.stdio import get_default_environment

    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
        env={**get_default_environment(), **env},
        cwd=cwd,
        start_new_session=True,
        limit=MOST_MESSAGE_BYTES,
    )
    received, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, sent = anyio.create_memory_object_stream[Any](0)
    flow = Flow()
    tasks = [
        asyncio.create_task(_read(process, received, flow, broken)),
        asyncio.create_task(_write(process, sent, received, flow)),
    ]
    try:
        yield incoming, outgoing
    finally:
        # Ended also where this task was cancelled.
        await asyncio.shield(_end(process, tasks))
        for stream in (received, incoming, outgoing, sent):
            stream.close()


async def _read(
    process: asyncio.subprocess.Process,
    received: Any,
    flow: Flow,
    broken: Callable[[str], None],
) -> None:
    import anyio

    assert process.stdout is not None
    try:
        async with received:
            while line := await _line(process.stdout, flow):
                await received.send(_message(line))
    except FlowExceeded as error:
        broken(str(error))
        _kill(process)  # nothing of what it goes on to send is wanted
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        return  # the session is over


async def _line(stdout: asyncio.StreamReader, flow: Flow) -> bytes:
    """Return the next line; empty at the end."""
    try:
        line = await stdout.readuntil(b"\n")
    except asyncio.IncompleteReadError:
        return b""
    except asyncio.LimitOverrunError as error:
        raise FlowExceeded.message() from error
    flow.count(len(line))
    return line


def _message(line: bytes) -> Any:
    """Return a message of the protocol, or the exception that says why it is none."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    try:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        return error


async def _write(process: asyncio.subprocess.Process, sent: Any, received: Any, flow: Flow) -> None:
    assert process.stdin is not None
    try:
        async with sent:
            async for item in sent:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                flow.restart()
                process.stdin.write(f"{text}\n".encode("utf-8", "replace"))
                await process.stdin.drain()
    except OSError:
        # Nothing can be asked any more: the session sees the end, not a call that hangs.
        await received.aclose()


async def _end(process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Let a program end by itself for a moment, then end it."""
    assert process.stdin is not None
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    process.stdin.close()
    drain = asyncio.create_task(_drain(process))
    try:
        async with asyncio.timeout(_END_WAIT_S):
            await process.wait()
    except TimeoutError:
        _kill(process)
        with suppress(TimeoutError):  # what has left its session may hold its output open
            async with asyncio.timeout(_END_WAIT_S):
                await process.wait()
    finally:
        drain.cancel()
        await asyncio.gather(drain, return_exceptions=True)


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a program and what it started in its session, which a wrapper would leave behind."""
    with suppress(ProcessLookupError, PermissionError):  # macOS: all of them have ended
        os.killpg(process.pid, signal.SIGKILL)


async def _drain(process: asyncio.subprocess.Process) -> None:
    """Discard a program's further output: one that waits for room in a pipe cannot end."""
    assert process.stdout is not None
    with suppress(ValueError, OSError):
        while await process.stdout.read(1 << 16):
            continue
