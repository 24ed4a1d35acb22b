"""A command on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from time import monotonic

from patience import PATIENCE_S


def _take_terminal() -> None:
    """Make standard input the controlling terminal, so that Ctrl-C becomes a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Screen:
    """A chat on a terminal of its own."""

    def __init__(
        self, *arguments: str, program: tuple[str, ...] = ("-m", "taskweaver"), **environment: str
    ) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, 100))
        self.process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", **environment},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(theirs)
        self.drawn = ""
        self._seen = 0

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def wait_for(self, text: str) -> None:
        """Read until `text` is drawn after what was waited for before."""
        until = monotonic() + PATIENCE_S
        while text not in self.drawn[self._seen :]:
            assert monotonic() < until, f"no {text!r} in {self.drawn[-2000:]!r}"
            assert self._read(1.0), f"ended without {text!r}: {self.drawn[-2000:]!r}"
        self._seen = self.drawn.index(text, self._seen) + len(text)

    def wait_for_end(self) -> int:
        """Read until the program ends; return its status."""
        until = monotonic() + PATIENCE_S
        while self._read(1.0):
            assert monotonic() < until, f"does not end: {self.drawn[-2000:]!r}"
        status = self.process.wait(PATIENCE_S)
        os.close(self._ours)
        return status

    def _read(self, timeout_s: float) -> bool:
        """Read once; return False when the other end is closed."""
        if not select.select([self._ours], [], [], timeout_s)[0]:
            return True
        try:
            read = os.read(self._ours, 65536).decode(errors="replace")
        except OSError:
            return False
        if "\x1b[6n" in read:
            self.type("\x1b[1;1R")
        self.drawn += read
        return bool(read)
