"""Anchors: sandboxes of bubblewrap in which only a small program runs, for processes to join.

The program is ``cat``. It returns a byte, which proves that bubblewrap has finished, and ends when
its owner does: then its input is closed.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from taskweaver.ces.errors import ForkRefused
from taskweaver.ces.inkernel.process import readable

PROGRAM = ["/bin/cat"]
_SLICE_S = 0.1
_NAMESPACES = {
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "mnt": 0x00020000,
}
"""Kinds of namespaces, and their flags of ``setns(2)``."""


class Anchor:
    """A sandbox that runs, with nothing in it yet. Close it.

    Attributes:
        process: The process of bubblewrap.
        death_fd: Readable when that process has ended.
        handle: Pidfd of the anchor inside.
        namespaces: Flags of ``setns(2)`` for the namespaces that it does not share with this
            process.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], timeout_s: float, is_wanted: Callable[[], bool]
    ) -> None:
        """Take charge of a process of bubblewrap that starts `PROGRAM`.

        Its input and output are pipes without buffers.

        Raises:
            ForkRefused: If it does not come up.
        """
        self.process = process
        self.death_fd = os.pidfd_open(self.process.pid)
        self.handle = -1
        try:
            self._wait(timeout_s, is_wanted)
            self.handle, self._pid = _handle(self.process.pid)
            self.namespaces = sum(
                flag
                for kind, flag in _NAMESPACES.items()
                if _link(self._pid, kind) != _link("self", kind)
            )
        except BaseException:
            self.close()
            raise

    def _wait(self, timeout_s: float, is_wanted: Callable[[], bool]) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        deadline = time.monotonic() + timeout_s
        try:
            self.process.stdin.write(b"\n")
        except OSError as error:
            raise ForkRefused(f"the sandbox has ended: {error}") from error
        while not readable([self.process.stdout], min(_SLICE_S, timeout_s)):
            if not is_wanted() or time.monotonic() > deadline:
                raise ForkRefused(f"the sandbox did not come up within {timeout_s:g} s")
        if not self.process.stdout.read(1):
            raise ForkRefused("the sandbox has ended")

    def path(self, path: Path) -> str:
        """Return another path of a file that is in the sandbox: on the mounts of the sandbox."""
        return f"/proc/{self._pid}/root{path}"

    def close(self) -> None:
        """End the sandbox; safe to call again."""
        if self.process.stdin is None or self.process.stdin.closed:
            return
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        os.close(self.death_fd)
        if self.handle >= 0:
            os.close(self.handle)


def _handle(pid: int) -> tuple[int, int]:
    """Return a handle of the anchor, and its process id.

    `pid` is that of bubblewrap. Its child is the first process inside, whose child is the anchor.

    Raises:
        ForkRefused: If there is none.
    """
    found = _anchor_of(pid)
    try:
        handle = os.pidfd_open(found)
    except OSError as error:
        raise ForkRefused(f"the sandbox has ended: {error}") from error
    try:
        is_held = _anchor_of(pid) == found  # until it was held, its number could become another's
    except ForkRefused:
        is_held = False
    if not is_held:
        os.close(handle)
        raise ForkRefused("the sandbox has ended")
    return handle, found


def _anchor_of(pid: int) -> int:
    for _ in range(2):
        try:
            (pid,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except (OSError, ValueError) as error:
            raise ForkRefused(f"the anchor of the sandbox is not found: {error}") from error
    return pid


def _link(pid: int | str, kind: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")  # noqa: PTH115 - a text is wanted
    except OSError as error:
        raise ForkRefused(f"the namespaces of the sandbox cannot be read: {error}") from error
