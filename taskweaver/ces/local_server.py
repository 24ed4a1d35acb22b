"""A server at a local socket for code in kernels and sandboxes, in an own thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from taskweaver.utils.system.network import Stream

_LINGER_S = 2.0


class SocketServer(ABC):
    """A server at a local socket. A subclass starts the thread once complete.

    Attributes:
        path: The socket it listens on.
    """

    def __init__(self, path: Path, name: str, *, backlog: int, limit_bytes: int) -> None:
        """Listen, with a thread of a name that is not started yet.

        `limit_bytes` is the most that a connection's reader looks through for a mark.

        Raises:
            OSError: If the socket cannot be made.
        """
        self.path = path
        self._limit_bytes = limit_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(str(path))
            self._socket.listen(backlog)
        except BaseException:
            self._socket.close()
            raise
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def close(self) -> None:
        """End the thread and every connection. Safe to call again."""
        if self._thread.is_alive():
            with suppress(RuntimeError):  # the loop ended by itself in between
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_unix_server(
            self._meet, sock=self._socket, limit=self._limit_bytes
        )
        await self._stopping.wait()
        server.close()
        self._break_off()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _break_off(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client, task = Stream(reader, writer), asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError):  # the client is gone or idle: nobody is left to tell
                await self._attend(client)
        finally:
            self._tasks.discard(task)
            client.abort()

    async def _finish(self, client: Stream, last: bytes) -> None:
        """Send the last bytes, and read on for a while: unread bytes would take the last back."""
        await client.send(last)
        client.writer.write_eof()
        async with asyncio.timeout(_LINGER_S):
            while await client.reader.read(self._limit_bytes):
                continue

    @abstractmethod
    async def _attend(self, client: Stream) -> None:
        """Serve a connection to the end."""
