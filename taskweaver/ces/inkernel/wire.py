"""Messages over a local socket: a length, a JSON header, and raw bytes.

Both ends of a state transfer use it, the kernel's side and the host's.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

STATE_FORMAT = 1
"""Format of the stored states that this version writes and reads."""
CHUNK_BYTES = 1 << 20
"""Size of the largest chunk of a stored state."""
_LENGTH = struct.Struct("!I")
_MOST_HEADER_BYTES = 8 << 20


class WireError(OSError):
    """The other end closed the connection, or sent bytes that are no message."""


class Wire:
    """One end of a connection, which the connection's owner closes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, header: Mapping[str, Any], body: bytes | bytearray | memoryview = b"") -> None:
        """Send plain data, from which the receiver learns the length of the raw bytes that follow.

        Raises:
            OSError: If the other end is gone or does not read.
        """
        data = json.dumps(header, separators=(",", ":")).encode()
        self._connection.sendall(_LENGTH.pack(len(data)) + data)
        if body:
            self._connection.sendall(body)

    def receive(self) -> dict[str, Any]:
        """Return the next header.

        Raises:
            WireError: If the connection ends, or the bytes are no header.
            TimeoutError: If nothing comes within the connection's timeout.
        """
        (length,) = _LENGTH.unpack(self.receive_bytes(_LENGTH.size))
        if length > _MOST_HEADER_BYTES:
            raise WireError(f"a header of {length:,} bytes")
        try:
            header = json.loads(self.receive_bytes(length))
        except (ValueError, RecursionError) as error:
            raise WireError("a header that is no JSON") from error
        if not isinstance(header, dict):
            raise WireError("a header that is no JSON object")
        return header

    def receive_bytes(self, size: int) -> bytearray:
        """Return the next bytes of the body, or raise as `receive`."""
        data = bytearray(size)
        self.receive_into(memoryview(data))
        return data

    def receive_into(self, view: memoryview) -> None:
        """Fill a writable buffer with the next bytes of the body, or raise as `receive`."""
        done = 0
        while done < len(view):
            count = self._connection.recv_into(view[done:])
            if not count:
                raise WireError("the connection was closed")
            done += count
