"""Commands of the program, forked from a process that has imported it already.

Most of a command's start are imports. A forked command has arguments, environment, folder,
streams and an end of its own, as one that a shell starts. Where the start itself is the subject of
a test, it starts the program by ``python -m taskweaver``.
"""

from __future__ import annotations

import gc
import io
import json
import locale
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
    "taskweaver.treesearch.service",
    "taskweaver.treesearch.reports.run_results",
    "taskweaver.doors.agent_api.door",
    "taskweaver.server.serving",
)
"""What most commands, searches and servers import."""
_RELAY = str(Path(__file__).with_name("warm_relay.py"))
_RUN_WITHIN_S = 120.0
_ASKED_WITHIN_S = 30.0
"""Longest wait for the request of a client, while those of all workers wait."""
BARE_FIGURES = "TASKWEAVER_TESTS_BARE_FIGURES"
"""Variable of a command's environment, with which its reports have pictures without a drawing."""
_PRELOAD = b"+"
"""First byte of a request to import a module; that of a command is another."""
_UTF8_PLACES = {"C", "POSIX", "C.UTF-8", "C.utf8", "UTF-8"}
"""Locales in which Python's streams are UTF-8 and pass on bytes that are not."""


class WarmCommands:
    """Commands, and the process that forks them, which the first one starts.

    Attributes:
        pids: Process ids of the process that forks them, if it runs.
    """

    def __init__(self, folder: Path, env: Mapping[str, str], shared: str = "") -> None:
        """Prepare it; nothing runs yet.

        Args:
            folder: Folder for a socket, in which the process that forks commands runs.
            env: Environment of that process.
            shared: Address of such a process that runs already, and is another one's to end.
        """
        self._folder = folder
        self._shared = shared
        self._own = str(folder / "commands")
        path = filter(None, [str(Path(__file__).parents[1]), env.get("PYTHONPATH")])
        self._env = {**env, "PYTHONPATH": os.pathsep.join(path)}
        self._env.pop("COVERAGE_PROCESS_CONFIG", None)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> set[int]:
        return set() if self._process is None else {self._process.pid}

    @property
    def program(self) -> list[str]:
        """What to start in place of ``python -m taskweaver``: it becomes a forked command.

        Its process takes signals, and ends as the command does; the command's process is another
        one, in a session of its own. It is killed when this one is, which does not wait for that:
        stop it by SIGTERM. Of what a command has from its start, these are handed on: streams and
        their encodings, arguments, environment, folder, umask and time zone. What else Python
        reads at its start (`PYTHONPATH`, `PYTHONHASHSEED`, `PYTHONWARNINGS`, `PYTHONUTF8` for other
        files than the streams), limits of resources, priority, other open files and ignored
        signals are those of the process that forks. While coverage is measured it is the program
        itself.
        """
        if "COVERAGE_PROCESS_CONFIG" in os.environ:
            return [sys.executable, "-m", "taskweaver"]
        return [sys.executable, "-I", "-S", _RELAY, self.address]

    @property
    def script(self) -> list[str]:
        """What to start in place of ``python -c``, as `program`: what follows is code.

        The code's process is forked from one that has imported the program, and also looks for
        modules where the environment's `PYTHONPATH` says. To kill it, have it tell its process id.
        """
        if "COVERAGE_PROCESS_CONFIG" in os.environ:
            return [sys.executable, "-c"]
        return [*self.program, "-c"]

    def run(
        self, *arguments: str, env: Mapping[str, str], cwd: Path | None = None, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with a text, or the end of all input, at its input.

        Raises:
            TimeoutError: It has not ended after two minutes, and is killed.
        """
        with (
            socket.socket(socket.AF_UNIX) as connection,
            _source(text) as source,
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as err,
        ):
            connection.settimeout(_RUN_WITHIN_S)
            connection.connect(self.address)
            streams = [file.fileno() for file in (source, out, err)]
            ask(connection, streams, arguments, dict(env), str(cwd or Path.cwd()))
            with connection.makefile("r") as lines:
                _, status = lines
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(arguments, int(status), out.read(), err.read())

    def preload(self, module: str) -> None:
        """Import a module in the process that forks commands, for those that come.

        Few files of tests need it, and their commands would each take long to import it.
        """
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_RUN_WITHIN_S)
            connection.connect(self.address)
            connection.sendall(_PRELOAD + f"{module}\n".encode())
            assert connection.recv(1) == _PRELOAD

    @property
    def address(self) -> str:
        """Address of the process that forks commands, which is started if there is none."""
        if self._shared:
            return self._shared
        if self._process is None:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(self._own)
                listener.listen()
                number = listener.fileno()
                command = [sys.executable, __file__, str(number)]
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, pass_fds=[number], start_new_session=True,
                    cwd=self._folder, env=self._env,
                )  # fmt: skip
        return self._own

    def close(self) -> None:
        """End the process that forks commands."""
        if self._process is not None:
            try:
                self._process.communicate(timeout=_RUN_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
                raise


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
        connection.settimeout(_ASKED_WITHIN_S)
        try:
            is_preload = connection.recv(1, socket.MSG_PEEK) == _PRELOAD
        except TimeoutError:
            connection.close()
            continue
        connection.settimeout(None)
        if is_preload:
            with connection, connection.makefile("r") as lines, suppress(ImportError):
                import_module(lines.readline().strip().removeprefix(_PRELOAD.decode()))
                gc.freeze()
                connection.sendall(_PRELOAD)
            continue
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
    os.umask(request["umask"])
    os.setsid()  # a signal to its group reaches neither this process's parents nor other commands
    time.tzset()
    _open_streams()
    return list(request["arguments"])


def _open_streams() -> None:
    """Open the streams as Python does at its start in this environment."""
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    try:
        place = locale.setlocale(locale.LC_CTYPE, "")
    except locale.Error:
        place = "C"
    is_utf8 = os.environ.get("PYTHONUTF8") == "1" or place in _UTF8_PLACES
    encoding = encoding or ("utf-8" if is_utf8 else locale.getencoding())
    errors = errors or ("surrogateescape" if is_utf8 else "strict")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        is_direct = bool(number and os.environ.get("PYTHONUNBUFFERED"))
        raw = open(  # noqa: SIM115 - stays open
            number, "wb" if number else "rb", buffering=0 if is_direct else -1, closefd=False
        )
        stream = io.TextIOWrapper(
            raw, encoding, "backslashreplace" if name == "stderr" else errors, newline="\n",
            line_buffering=not is_direct and (raw.isatty() or name == "stderr"),
            write_through=is_direct,
        )  # fmt: skip
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _run_code(code: str, *arguments: str) -> None:
    """Run code as ``python -c`` does."""
    sys.argv = ["-c", *arguments]
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})


def _bare_figure(*_: object) -> bytes:
    """Return a small picture of one colour."""
    from PIL import Image

    made = io.BytesIO()
    Image.new("RGB", (4, 4)).save(made, "PNG")
    return made.getvalue()


if __name__ == "__main__":
    listener = socket.socket(fileno=int(sys.argv[1]))
    sys.path[0] = ""  # as for `python -m`
    for name in _USED:
        import_module(name)
    from taskweaver.__main__ import main
    from taskweaver.memory.branched.run.environment import collect_environment
    from taskweaver.memory.branched.run.hardware import copy_rate

    collect_environment()  # asked for once, and kept for each search
    copy_rate()
    gc.freeze()

    sys.argv[1:] = _forked(_serve(listener))
    if BARE_FIGURES in os.environ:
        from taskweaver.treesearch.reports import figures

        figures._render = _bare_figure
    if sys.argv[1:2] == ["-c"]:
        _run_code(*sys.argv[2:])
    else:
        main()
