"""``%%bash`` and ``%%sh``: a script in its own process, with its output and exit status.

IPython's own magics keep a thread and a socket for the rest of the session, which rules out a fork
of the kernel; they pass the script on the shell's standard input, so a command that reads input
consumes the rest of the script; and their errors are tracebacks through IPython. They are still
used for a magic with options.
"""

from __future__ import annotations

import codecs
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from taskweaver.utils.system.platform import signal_name

_PIPE_BYTES = 1 << 16
_QUIET_S = 0.2
"""How long nothing may come from what a script left running, before it is left alone."""


class ScriptFailed(Exception):
    """A script ended with an exit status other than 0."""

    def _render_traceback_(self) -> list[str]:
        """Return the message alone: the Python stack says nothing about the script."""
        return [str(self)]


def add_script_magics(shell: Any) -> None:
    """Register the magics with an IPython shell."""
    for program in ("bash", "sh"):
        shell.register_magic_function(_magic(shell, program), "cell", program)


def _magic(shell: Any, program: str) -> Callable[[str, str], None]:
    def script(line: str, cell: str) -> None:
        if line.strip():
            shell.run_cell_magic("script", f"{program} {line}", cell)
        else:
            run_script(program, cell)

    return script


def run_script(program: str, script: str) -> None:
    """Run a script, and pass its output on while it runs.

    Raises:
        ScriptFailed: If its exit status is not 0.
        OSError: If it cannot be started.
    """
    with subprocess.Popen(
        [program, "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    ) as process:
        try:
            _print(process)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise ScriptFailed(_ending(process.returncode))


def _print(process: subprocess.Popen[bytes]) -> None:
    """Pass output on until the script ends."""
    with selectors.DefaultSelector() as selector:
        for pipe, stream in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            selector.register(pipe, selectors.EVENT_READ, (stream, decoder))  # type: ignore[arg-type]
        while selector.get_map():
            ready = selector.select(_QUIET_S)
            if not ready and process.poll() is not None:
                return
            for key, _ in ready:
                stream, decoder = key.data
                data = os.read(key.fd, _PIPE_BYTES)
                stream.write(decoder.decode(data, final=not data))
                stream.flush()
                if not data:
                    selector.unregister(key.fd)
    process.wait()


def _ending(status: int) -> str:
    if status > 0:
        return f"exit status {status}"
    return f"ended by {signal_name(-status)}"
