"""The process at the other end of a local socket.

Without namespaces, code of another session learns the addresses of all sockets from the system.
"""

from __future__ import annotations

import socket
import struct

import psutil

_CREDENTIALS = struct.Struct("3i")


def peer_of(connection: socket.socket) -> int:
    """Return the id of the process that connected."""
    size = _CREDENTIALS.size
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(_CREDENTIALS.unpack(found)[0])


def descends(pid: int, ancestor: int) -> bool:
    """Return whether a process is another one, or was started by it or one of its descendants."""
    # A process between them may end just now; then the one below it has another parent.
    return _is_below(pid, ancestor) or _is_below(pid, ancestor)


def _is_below(pid: int, ancestor: int) -> bool:
    try:
        while pid > 1 and pid != ancestor:
            pid = psutil.Process(pid).ppid()
    except psutil.Error:
        return False
    return pid == ancestor
