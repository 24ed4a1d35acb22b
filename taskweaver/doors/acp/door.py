"""The door: answers the client on standard input and output until it goes."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from acp.agent.connection import AgentSideConnection

from taskweaver.app.app import TaskWeaverApp
from taskweaver.doors.acp.agent import AcpAgent
from taskweaver.logging.log import TelemetryLogger


class _ToLog(logging.Handler):
    """Writes the package's own messages to the log of the application."""

    def __init__(self, log: TelemetryLogger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, with its traceback."""
        trace = traceback.format_exception(record.exc_info[1]) if record.exc_info else []
        self._log.warning("\n".join([f"acp: {record.getMessage()}", *trace]))


def serve_acp(app: TaskWeaverApp) -> None:
    """Answer the client until its end of input, or a signal; rounds that run are ended then."""
    handler, root = _ToLog(app.log), logging.getLogger()
    root.addHandler(handler)
    try:
        with _protocol_output() as outgoing:
            asyncio.run(_serve(app, outgoing))
    finally:
        root.removeHandler(handler)


@contextmanager
def _protocol_output() -> Iterator[IO[bytes]]:
    """Keep standard output for the protocol: other writes to it go to standard error."""
    sys.stdout.flush()
    protocol = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        with os.fdopen(protocol, "wb", buffering=0, closefd=False) as outgoing:
            yield outgoing
    finally:
        sys.stdout.flush()
        os.dup2(protocol, sys.stdout.fileno())
        os.close(protocol)


async def _serve(app: TaskWeaverApp, outgoing: IO[bytes]) -> None:
    agent: Any = AcpAgent(app)
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    incoming, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, outgoing)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, incoming.close)  # what came before is answered
    connection = AgentSideConnection(
        agent, writer, reader, listening=False, use_unstable_protocol=True
    )
    try:
        await connection.listen()
    finally:
        await connection.close()
