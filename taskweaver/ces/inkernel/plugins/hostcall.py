"""Calls of the application's functions from inside a kernel; `ces.hostcalls` answers them.

One connection for each call: nothing stays open that a fork could not take along.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from taskweaver.plugin.errors import HostCallFailed

_PIECE_BYTES = 1 << 16


def call(path: str, name: str, arguments: Mapping[str, Any]) -> Any:
    """Call a function and wait for its result.

    Raises:
        HostCallFailed: If it cannot be called, or fails.
    """
    try:
        text = json.dumps({"name": name, "arguments": dict(arguments)}, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise HostCallFailed(name, f"the arguments cannot be sent as JSON: {error}") from None
    try:
        reply = json.loads(_exchange(path, text.encode() + b"\n"))
    except OSError as error:
        raise HostCallFailed(name, f"the application cannot be reached: {error}") from error
    except ValueError:
        raise HostCallFailed(name, "the call was broken off by the application.") from None
    if "error" in reply:
        raise HostCallFailed(name, reply["error"])
    return reply["value"]


def _exchange(path: str, request: bytes) -> bytes:
    """Send a request; return the reply, which ends with the connection."""
    pieces = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        with suppress(BrokenPipeError):  # refused before it was read to its end; the reply says why
            connection.sendall(request)
        while piece := connection.recv(_PIECE_BYTES):
            pieces.append(piece)
    return b"".join(pieces)


def _plain(value: Any) -> Any:
    """Return plain data for a value that JSON cannot hold."""
    for method in ("tolist", "isoformat"):  # numpy's scalars and arrays; dates
        if hasattr(value, method):
            return getattr(value, method)()
    raise TypeError(f"{type(value).__name__} has no form in JSON; give plain data")
