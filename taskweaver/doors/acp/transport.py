"""Messages of the protocol on standard input and output, one line of JSON each.

The transport of the package `acp` skips a line that is no JSON, and ends at one that is no object.
This one answers them, and words the errors of parameters as sentences.
"""

from __future__ import annotations

import asyncio
import json
from typing import IO, Any

from taskweaver.doors.acp.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR

MOST_MESSAGE_BYTES = 64 << 20
"""Size of the largest message that is read; files come inside of messages."""

_MOST_PROBLEMS = 5


class StdioTransport:
    """The messages of one client. Close it.

    It is a transport as the package `acp` takes them.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        incoming: asyncio.ReadTransport,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._reader = reader
        self._incoming = incoming
        self._writer = writer
        self._sending = asyncio.Lock()

    @classmethod
    async def open(cls, incoming: IO[bytes], outgoing: IO[bytes]) -> StdioTransport:
        """Speak on two pipes, sockets or terminals."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(MOST_MESSAGE_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        reading, _ = await loop.connect_read_pipe(lambda: protocol, incoming)
        transport, writing = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, outgoing
        )
        return cls(reader, reading, asyncio.StreamWriter(transport, writing, None, loop))

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None when the client has gone."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return None
            except asyncio.LimitOverrunError:
                await self._refuse(INVALID_REQUEST, "A message has at most 64 MiB.")
                return None  # its end cannot be found without reading all of it
            message = await self._read(line)
            if message is not None:
                return message

    async def _read(self, line: bytes) -> dict[str, Any] | None:
        """Return the message of a line; None for one that is none, which is answered."""
        if not line.strip():
            return None
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            await self._refuse(PARSE_ERROR, f"The line is no JSON: {error}.")
            return None
        problem = _problem(message)
        if problem:
            message_id = message.get("id") if isinstance(message, dict) else None
            plain = message_id if isinstance(message_id, int | str) else None
            await self._refuse(INVALID_REQUEST, problem, plain)
            return None
        found: dict[str, Any] = message
        return found

    async def _refuse(self, code: int, sentence: str, message_id: int | str | None = None) -> None:
        error = {"code": code, "message": sentence}
        await self.send({"jsonrpc": "2.0", "id": message_id, "error": error})

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message, and wait until the client takes it.

        Raises:
            ConnectionError: If the client has gone.
        """
        line = json.dumps(_with_sentence(message), separators=(",", ":"), default=str)
        async with self._sending:
            try:
                self._writer.write(line.encode("utf-8", "replace") + b"\n")
                await self._writer.drain()
            except OSError as error:
                self.end()
                raise ConnectionError("the client has gone") from error

    def end(self) -> None:
        """Read nothing more: the messages that came are answered."""
        self._incoming.close()

    async def close(self) -> None:
        """Close input and output."""
        self._incoming.close()
        self._writer.close()


def _problem(message: object) -> str:
    """Return why a value is no message; empty if it is one."""
    if not isinstance(message, dict):
        return "A message is an object of JSON."
    if "id" in message and not isinstance(message["id"], int | str | None):
        return "The id of a message is a number or a text."
    if "method" not in message:
        return "" if "id" in message else "A message has a method, or answers a request."
    if not isinstance(message["method"], str):
        return "The method of a message is a text."
    if not isinstance(message.get("params"), dict | None):
        return "The params of a message are an object."
    return ""


def _with_sentence(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message whose error of parameters names them in a sentence."""
    error = message.get("error")
    if not isinstance(error, dict) or error.get("code") != INVALID_PARAMS:
        return message
    problems = (error.get("data") or {}).get("errors", [])
    if not problems:
        return message
    named = [
        f"{'.'.join(map(str, problem['loc'])) or 'params'}: {problem['msg']}"
        for problem in problems[:_MOST_PROBLEMS]
    ]
    sentence = f"The parameters do not fit the method: {'; '.join(named)}."
    return {**message, "error": {"code": INVALID_PARAMS, "message": sentence}}
