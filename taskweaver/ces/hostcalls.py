"""The way from code in a kernel to functions of this process.

A kernel has no network, no keys and no conversation; functions that need them stay here and are
called over a local socket, one connection for each call: a line of JSON ``{"name", "arguments"}``,
answered by ``{"value"}`` or ``{"error"}``. A kernel may send anything: it is taken for data.

Calls are answered only while a cell runs, and whether one may go ahead is asked in the thread that
waits for the cell: there a person can be asked, and can interrupt.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from taskweaver.ces.local_server import SocketServer
from taskweaver.errors import TaskWeaverError
from taskweaver.utils.ids import create_id
from taskweaver.utils.system.network import Stream

MOST_BYTES = 8 << 20
"""Longest request and longest reply; more is refused, never cut."""

_MOST_CALLS = 16
_DRAINED_BYTES = 1 << 16
_REQUEST_S = 30.0


class HostFunctions(Protocol):
    """Functions that code in a kernel may call."""

    def permit(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return why a call may not go ahead, or "" when allowed.

        Called in the thread that waits for the cell.
        """

    def call(self, name: str, arguments: Mapping[str, Any]) -> Future[Any]:
        """Begin a call whose result is plain data.

        It is cancelled when the cell is interrupted or ends. The code gets the
        text of an error that it raises. Must not block.
        """


class _Refused(Exception):
    """The call is refused, with this text for the caller."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A question whether a call may proceed."""

    name: str
    arguments: Mapping[str, Any]
    answer: Future[str] = field(default_factory=Future)


class HostCalls(SocketServer):
    """Server for the calls of one kernel, in an own thread. Close the server.

    Attributes:
        functions: Functions that may be called; changed between cells only.
        waiting_fd: Can be read when a call waits for `settle`.
    """

    def __init__(self, folder: Path, functions: HostFunctions) -> None:
        """Start the server.

        Raises:
            OSError: If the socket cannot be made.
        """
        path = folder / create_id("call")
        super().__init__(path, "host-calls", backlog=_MOST_CALLS, limit_bytes=MOST_BYTES)
        self.functions = functions
        self._questions: SimpleQueue[_Question] = SimpleQueue()
        self._is_answered = False
        self._context = copy_context()
        self.waiting_fd, self._waiting_end = os.pipe()
        for end in (self.waiting_fd, self._waiting_end):
            os.set_blocking(end, False)
        self._thread.start()

    @contextmanager
    def answered(self) -> Iterator[None]:
        """Answer calls inside the block. Calls still under way at the end are broken off."""
        self._context = copy_context()
        self._is_answered = True
        try:
            yield
        finally:
            self._is_answered = False
            self._loop.call_soon_threadsafe(self._break_off)
            self._refuse_waiting()

    def settle(self, *, is_open: bool) -> float:
        """Decide on the calls that wait, and return the duration in seconds.

        Without `is_open` none may go ahead: an interrupted cell makes no more of them.
        """
        since = time.monotonic()
        for question in self._waiting():
            if not question.answer.set_running_or_notify_cancel():
                continue  # its cell was interrupted meanwhile
            refusal = "it was not allowed."
            try:
                if is_open:
                    refusal = self.functions.permit(question.name, question.arguments)
            finally:
                question.answer.set_result(refusal)
        return time.monotonic() - since

    def _waiting(self) -> Iterator[_Question]:
        with suppress(BlockingIOError):
            os.read(self.waiting_fd, _DRAINED_BYTES)
        while True:
            try:
                yield self._questions.get_nowait()
            except Empty:
                return

    def _refuse_waiting(self) -> None:
        for question in self._waiting():
            question.answer.cancel()

    def close(self) -> None:
        """End the server and every call. Safe to call again."""
        if not self._thread.is_alive():
            return
        super().close()
        self._refuse_waiting()
        os.close(self.waiting_fd)
        os.close(self._waiting_end)
        self.path.unlink(missing_ok=True)

    async def _attend(self, client: Stream) -> None:
        try:
            name, arguments = await self._request(client.reader)
            reply = {"value": await self._until_gone(client.reader, name, arguments)}
            text = json.dumps(reply).encode()
            if len(text) > MOST_BYTES:
                raise _Refused(
                    f"the result has {len(text) / (1 << 20):.1f} MiB, and at most "
                    f"{MOST_BYTES >> 20} MiB can be handed over; ask for less."
                )
        except (_Refused, TaskWeaverError) as error:
            text = json.dumps({"error": str(error)}).encode()
        except Exception as error:  # noqa: BLE001 - whatever a function raises, its caller is told
            text = json.dumps({"error": f"{type(error).__name__}: {error}"}).encode()
        await self._finish(client, text)

    async def _request(self, reader: asyncio.StreamReader) -> tuple[str, dict[str, Any]]:
        """Return the name of the called function, and the arguments."""
        if len(self._tasks) > _MOST_CALLS:
            raise _Refused(f"{_MOST_CALLS} calls are under way already; wait for one to end.")
        try:
            async with asyncio.timeout(_REQUEST_S):
                line = await reader.readuntil(b"\n")
            asked = json.loads(line)
        except asyncio.LimitOverrunError:
            text = f"the arguments have more than {MOST_BYTES >> 20} MiB; send less."
            raise _Refused(text) from None
        except (asyncio.IncompleteReadError, ValueError, RecursionError):
            raise _Refused("this is no request.") from None
        match asked:
            case {"name": str(name), "arguments": dict(arguments)}:
                return name, arguments
        raise _Refused("a request has a name and arguments.")

    async def _until_gone(
        self, reader: asyncio.StreamReader, name: str, arguments: dict[str, Any]
    ) -> Any:
        """Carry out a call until the result, or until the caller goes away."""
        work = asyncio.ensure_future(self._carry_out(name, arguments))
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise _Refused("the caller did not wait for the result.")
            return work.result()
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _carry_out(self, name: str, arguments: dict[str, Any]) -> Any:
        if not self._is_answered:
            raise _Refused("it can be called only while a cell runs.")
        question = _Question(name, arguments)
        self._questions.put(question)
        with suppress(BlockingIOError):  # it is full: the other end is woken anyway
            os.write(self._waiting_end, b"\0")
        refusal = await asyncio.wrap_future(question.answer)
        if refusal:
            raise _Refused(refusal)
        # In the context of the cell, so that what a call records is a part of it.
        call = self._context.run(self.functions.call, name, arguments)
        return await asyncio.wrap_future(call)
