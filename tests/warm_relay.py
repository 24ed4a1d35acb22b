"""A process in place of a command that was forked elsewhere: it hands on signals and the end.

It has the command's streams, arguments, environment, folder and umask, and hands them on at its
start.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

_HANDED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def ask(
    connection: socket.socket,
    streams: Sequence[int],
    arguments: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
) -> None:
    """Ask for a command; the answer is a line with its process id, then one with its status."""
    request = {"arguments": arguments, "cwd": cwd, "env": env, "umask": _umask()}
    socket.send_fds(connection, [b" "], streams)
    connection.sendall(json.dumps(request).encode() + b"\n")


def _umask() -> int:
    """Return the umask of this process; asking the system for it by a call would set another."""
    with open("/proc/self/status") as status:  # noqa: PTH123 - a path takes long to import
        return next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))


def main(address: str, *arguments: str) -> None:
    """Have a command forked, hand signals on to it, and end as it ends."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDED_ON)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    ask(connection, (0, 1, 2), arguments, dict(os.environ), os.getcwd())  # noqa: PTH109
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    lines = connection.makefile("r")
    command = int(lines.readline())

    def hand_on(number: int, _: object) -> None:
        with suppress(ProcessLookupError):  # it has ended, and its status is about to come
            os.kill(command, number)

    for number in _HANDED_ON:
        signal.signal(number, hand_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDED_ON)
    status = int(lines.readline())
    if status < 0:
        if -status != signal.SIGKILL:  # which has no handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
