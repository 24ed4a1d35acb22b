"""Install this project into the environment of the Python that runs this file, with progress.

Takes the extras as arguments. uv is used where it is installed; where it is not, or fails, pip is.
An installation that was interrupted is completed by the same command.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

_LIVE_S, _PLAIN_S = 1.0, 15.0
"""Time between two updates, at a terminal and elsewhere."""

_LAST_LINES = 25
_INTERRUPTED = 130
_COLLECTED = re.compile(r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)")
_INSTALLING = "Installing collected packages: "
_PIP = (
    *("-m", "pip", "install", "--disable-pip-version-check", "--no-input"),
    *("--progress-bar", "off", "--no-compile"),
)
_COMPILE = ("-W", "ignore", "-m", "compileall", "-qq", "-j", "0")
"""pip compiles on one core."""


class Progress:
    """One line that says how far an installation is, with the time it took so far."""

    def __init__(self) -> None:
        self._since = monotonic()
        self._is_live = sys.stdout.isatty() and os.environ.get("TERM") not in {None, "", "dumb"}
        self._text = "asking the package index"
        self._found: set[str] = set()
        self._installing = 0
        self._before = _installed()
        self._lock = threading.Lock()

    def take(self, line: str) -> None:
        """Handle a line of pip's output."""
        collected = _COLLECTED.match(line)
        with self._lock:
            if collected:
                self._found.add(collected[1].lower())
                self._text = f"downloading: {len(self._found)} packages"
            elif line.startswith(_INSTALLING):
                self._installing = line.count(",") + 1
                self._before = _installed()
                self._show(f"downloaded: {len(self._found)} packages", is_last=True)

    def compiling(self) -> None:
        """Show that the packages are compiled now."""
        with self._lock:
            self._installing, self._text = 0, "compiling"

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the line again and again inside the block."""
        is_over = threading.Event()

        def repeat() -> None:
            while not is_over.wait(_LIVE_S if self._is_live else _PLAIN_S):
                with self._lock:
                    self._show(self._state())

        ticker = threading.Thread(target=repeat, name="progress")
        ticker.start()
        try:
            yield
        finally:
            is_over.set()
            ticker.join()

    def end(self, text: str) -> None:
        """Show the last line."""
        self._show(text, is_last=True)

    def _state(self) -> str:
        if not self._installing:
            return self._text
        done = min(max(_installed() - self._before, 0), self._installing)
        return f"installing: {done} of {self._installing} packages"

    def _show(self, text: str, *, is_last: bool = False) -> None:
        line = f"  {text}, {monotonic() - self._since:.0f} s"
        if self._is_live:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{line[:width]}", end="\n" if is_last else "", flush=True)
        else:
            print(line, flush=True)


def main(extras: list[str]) -> int:
    """Install the project with some extras; return the exit status."""
    try:
        return _install(f".[{','.join(extras)}]" if extras else ".")
    except KeyboardInterrupt:
        print("\nInterrupted. The same command completes the installation.", flush=True)
        return _INTERRUPTED


def _install(target: str) -> int:
    uv = shutil.which("uv")
    print(
        f"Installing TaskWeaver into {sys.prefix} with {'uv' if uv else 'pip'}"
        f" (Python {platform.python_version()}); the first time can take a few minutes.",
        flush=True,
    )
    if uv and _with_uv(uv, target) == 0:
        return 0
    if uv:
        print("uv failed; trying pip.", flush=True)
    return _with_pip(target)


def _with_uv(uv: str, target: str) -> int:
    """Run uv, which shows its own progress."""
    # A kernel in a sandbox may not write here, and would compile what it imports each time.
    options = ("--python", sys.executable, "--compile-bytecode", "--editable", target)
    return _status([uv, "pip", "install", *options])


def _status(command: list[str]) -> int:
    """Run a program; return its exit status, also after an interrupt, which it gets too."""
    with subprocess.Popen(command) as process:
        return process.wait()


def _with_pip(target: str) -> int:
    if importlib.util.find_spec("pip") is None:  # made by uv, or interrupted
        status = _status([sys.executable, "-m", "ensurepip", "--upgrade", "--default-pip"])
        if status:
            return status
    progress, last = Progress(), deque[str](maxlen=_LAST_LINES)
    command = [sys.executable, *_PIP, "--editable", target]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (
        subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
        progress.shown(),
    ):
        for line in process.stdout or ():
            last.append(line)
            progress.take(line)
        status = process.wait()
        if not status:
            progress.compiling()
            _compile(sysconfig.get_path("purelib"))
    if status:
        progress.end("failed")
        print("".join(last), end="", file=sys.stderr)
        print("The same command completes the installation.", file=sys.stderr)
    else:
        progress.end(f"done: {_installed()} packages")
    return status


def _compile(folder: str) -> None:
    """Compile packages; files of other versions of Python fail, which is no harm."""
    command = [sys.executable, *_COMPILE, folder]
    with subprocess.Popen(command, process_group=0) as process:
        try:
            process.wait()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)  # its workers would go on
            raise


def _installed() -> int:
    """Return the number of packages in this environment."""
    return sum(1 for _ in Path(sysconfig.get_path("purelib")).glob("*.dist-info"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
