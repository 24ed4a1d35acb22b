"""A process in place of a command that was forked elsewhere: it hands on signals and the end.

It has the command's streams, arguments, environment and folder, and hands them on at its start.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence

_HANDED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def ask(
    connection: socket.socket,
    streams: Sequence[int],
    arguments: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
) -> None:
    """Ask for a command; the answer is a line with its process id, then one with its status."""
    request = {"arguments": arguments, "cwd": cwd, "env": env}
    socket.send_fds(connection, [b" "], streams)
    connection.sendall(json.dumps(request).encode() + b"\n")


def main(address: str, *arguments: str) -> None:
    """Be a command."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDED_ON)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    ask(connection, (0, 1, 2), arguments, dict(os.environ), os.getcwd())  # noqa: PTH109
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    lines = connection.makefile("r")
    command = int(lines.readline())
    for number in _HANDED_ON:
        signal.signal(number, lambda number, _: os.kill(command, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDED_ON)
    status = int(lines.readline())
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
