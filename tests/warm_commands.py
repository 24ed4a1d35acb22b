"""Commands of the program, forked from a process that has imported it already.

Most of a command's start are imports. A forked command has arguments, environment, folder,
streams and an end of its own, as one that a shell starts. Where the start itself is the subject of
a test, it starts the program by ``python -m taskweaver``.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO

_STATUS_BYTES = 10
_USED = (
    "taskweaver.app.app",
    "taskweaver.ces.kernel.channel",
    "taskweaver.cli.conversations.script",
    "taskweaver.cli.projects.doctor",
    "taskweaver.code_interpreter",
    "taskweaver.llm.offline",
    "taskweaver.planner",
)
"""What most commands import."""


@dataclass(frozen=True, slots=True)
class WarmCommands:
    """Runs commands.

    Attributes:
        _connection: The connection to the process that forks them.
    """

    _connection: socket.socket

    def run(
        self, *arguments: str, env: Mapping[str, str], cwd: Path | None = None, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with a text, or the end of all input, at its input."""
        request = {"arguments": arguments, "cwd": str(cwd or Path.cwd()), "env": dict(env)}
        with (
            _source(text) as source,
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as err,
        ):
            streams = [file.fileno() for file in (source, out, err)]
            socket.send_fds(self._connection, [b" "], streams)
            self._connection.sendall(json.dumps(request).encode() + b"\n")
            status = int(self._connection.recv(_STATUS_BYTES))
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(arguments, status, out.read(), err.read())


def _source(text: str) -> IO[bytes]:
    """Return an open pipe that holds a text; without one, a device at its end."""
    if not text:
        return Path(os.devnull).open("rb")
    out, into = os.pipe()
    with open(into, "w") as pipe:  # noqa: PTH123 - not a path
        pipe.write(text)
    return open(out, "rb")  # noqa: PTH123


@contextmanager
def forked_commands() -> Iterator[WarmCommands]:
    """Start the process that forks commands, and end it at last."""
    here, there = socket.socketpair()
    command = [sys.executable, __file__, str(there.fileno())]
    with here, subprocess.Popen(command, pass_fds=[there.fileno()]) as process:
        there.close()
        try:
            yield WarmCommands(here)
        finally:
            here.close()
            process.wait()


def _serve(connection: socket.socket) -> list[str]:
    """Fork a process for each request; returns in the forked processes, with their arguments."""
    while True:
        _, streams, _, _ = socket.recv_fds(connection, 1, 3)
        if not streams:
            os._exit(0)
        with connection.makefile("r") as lines:
            request = json.loads(lines.readline())
        child = os.fork()
        if child == 0:
            break
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    time.tzset()
    return list(request["arguments"])


if __name__ == "__main__":
    connection = socket.socket(fileno=int(sys.argv[1]))
    sys.path[0] = ""  # as for `python -m`
    for name in _USED:
        import_module(name)
    gc.freeze()
    from taskweaver.__main__ import main

    sys.argv[1:] = _serve(connection)
    main()
