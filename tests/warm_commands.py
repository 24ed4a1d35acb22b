"""Commands of the program, forked from a process that has imported it already.

Most of a command's start are imports. A forked command has arguments, environment, folder,
streams and an end of its own, as one that a shell starts. Where the start itself is the subject of
a test, it starts the program by ``python -m taskweaver``.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO

from warm_relay import ask

_USED = (
    "taskweaver.app.app",
    "taskweaver.ces.kernel.channel",
    "taskweaver.cli.conversations.script",
    "taskweaver.cli.projects.doctor",
    "taskweaver.code_interpreter",
    "taskweaver.llm.offline",
    "taskweaver.planner",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "taskweaver.app.search_service",
    "taskweaver.treesearch.reports.run_results",
    "taskweaver.doors.agent_api.door",
    "taskweaver.server.serving",
)
"""What most commands, searches and servers import."""
_RELAY = str(Path(__file__).with_name("warm_relay.py"))


class WarmCommands:
    """Runs commands.

    Attributes:
        pids: Process ids of the process that forks them, if it runs.
    """

    def __init__(self, folder: Path) -> None:
        """Prepare it; nothing runs yet. The folder is for a socket."""
        self._address = str(folder / "commands")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> set[int]:
        return set() if self._process is None else {self._process.pid}

    @property
    def program(self) -> list[str]:
        """What to start in place of ``python -m taskweaver``: it becomes a forked command.

        Its process takes signals, and ends as the command does, which ends with it; the command's
        process is another one. While coverage is measured it is the program itself.
        """
        if "COVERAGE_PROCESS_CONFIG" in os.environ:
            return [sys.executable, "-m", "taskweaver"]
        return [sys.executable, "-I", "-S", _RELAY, self._listening()]

    def run(
        self, *arguments: str, env: Mapping[str, str], cwd: Path | None = None, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with a text, or the end of all input, at its input."""
        with (
            socket.socket(socket.AF_UNIX) as connection,
            _source(text) as source,
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as err,
        ):
            connection.connect(self._listening())
            streams = [file.fileno() for file in (source, out, err)]
            ask(connection, streams, arguments, dict(env), str(cwd or Path.cwd()))
            _, status = connection.makefile("r")
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(arguments, int(status), out.read(), err.read())

    def _listening(self) -> str:
        """Start the process that forks commands, if there is none; return its address."""
        if self._process is None:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(self._address)
                listener.listen()
                number = listener.fileno()
                command = [sys.executable, __file__, str(number)]
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, pass_fds=[number], start_new_session=True
                )
        return self._address

    def close(self) -> None:
        """End the process that forks commands."""
        if self._process is not None:
            self._process.communicate()


def _source(text: str) -> IO[bytes]:
    """Return an open pipe that holds a text; without one, a device at its end."""
    if not text:
        return Path(os.devnull).open("rb")
    out, into = os.pipe()
    with open(into, "w") as pipe:  # noqa: PTH123 - not a path
        pipe.write(text)
    return open(out, "rb")  # noqa: PTH123


def _serve(listener: socket.socket) -> socket.socket:
    """Fork a process for each request, until the end of the input; returns in those."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    while True:
        readable, _, _ = select.select([listener, sys.stdin], [], [])
        if listener not in readable:
            os._exit(0)
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            return connection
        connection.close()


def _forked(connection: socket.socket) -> list[str]:
    """Fork a command; returns in it, with its arguments, while this process waits for its end.

    The end of the connection is the end of the command.
    """
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("r") as lines:
        request = json.loads(lines.readline())
    command = os.fork()
    if command:
        for stream in (0, 1, 2, *streams):
            os.close(stream)
        connection.sendall(f"{command}\n".encode())
        end = os.pidfd_open(command)
        readable, _, _ = select.select([end, connection], [], [])
        if end not in readable:
            os.kill(command, signal.SIGKILL)
        _, status = os.waitpid(command, 0)
        with suppress(OSError):  # nobody listens
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    time.tzset()
    if os.environ.get("PYTHONUNBUFFERED"):
        sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    return list(request["arguments"])


if __name__ == "__main__":
    listener = socket.socket(fileno=int(sys.argv[1]))
    sys.path[0] = ""  # as for `python -m`
    for name in _USED:
        import_module(name)
    gc.freeze()
    from taskweaver.__main__ import main

    sys.argv[1:] = _forked(_serve(listener))
    main()
