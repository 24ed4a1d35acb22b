"""Log files that are written where possible: a failure loses lines, is counted, and never raises.

A line that a full disk cut off is ended before the next one, so it spoils no other. Lines that
cannot be written are dropped and counted; the first line that can be written again gives the
number and the reason.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

from taskweaver.memory.branched.logs.log_lines import encoded, head

_MODE = 0o600
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT
# Without O_NONBLOCK the opening of a pipe waits for its reader. Not every system has all of these.
for _name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)


class LogFolder:
    """The log files in a folder. The folder and its files are made when they are written.

    All methods may be called from any thread, and several processes may write the same files.
    """

    def __init__(self, folder: Path) -> None:
        """Keep the folder in mind; it may be missing, or unusable."""
        self.folder = folder
        self._lock = threading.Lock()
        self._lost: dict[str, int] = {}
        self._reasons: dict[str, str] = {}
        self._has_warned = False

    def append(self, name: str, lines: Sequence[str]) -> int:
        """Append lines to a file, as far as possible.

        Args:
            name: Name of the file.
            lines: The lines, without line breaks.

        Returns:
            How many of the lines are in the file, counted from the first.
        """
        with self._lock:
            note = self._note(name)
            data = "".join(f"{line}\n" for line in (*note, *lines)).encode("utf-8", "replace")
            count, error = _append(self.folder / name, data)
            if note and count:
                del self._lost[name]
            written = max(0, count - len(note))
            if error is not None:
                self._lose(name, len(lines) - written, error)
            return written

    def lose(self, name: str, count: int, error: Exception) -> None:
        """Count lines of a file that could not be made, and warn."""
        with self._lock:
            self._lose(name, count, error)

    def _lose(self, name: str, count: int, error: Exception) -> None:
        if not self._lost.get(name):
            self._reasons[name] = _reason(error)
        self._lost[name] = self._lost.get(name, 0) + count
        if not self._has_warned:
            self._has_warned = True
            _warn(self.folder / name, _reason(error))

    def _note(self, name: str) -> list[str]:
        """Return the line that gives the number of lost lines, if there are any."""
        count = self._lost.get(name, 0)
        if not count:
            return []
        details = {"count": count, "reason": self._reasons[name]}
        return [encoded({**head("log_lines_lost", "internal", "log"), "details": details})]


def _append(path: Path, data: bytes) -> tuple[int, OSError | None]:
    """Append whole lines to a file; return how many are in it, and why the others are not."""
    written, begin = 0, b""
    try:
        descriptor = _open(path)
        try:
            begin = b"" if _ends_a_line(descriptor) else b"\n"
            # One call for all, so that several processes do not mix their lines. A call that is
            # cut short is followed by one that finds out why.
            left = memoryview(begin + data)
            while left:
                size = os.write(descriptor, left)
                written += size
                left = left[size:]
        finally:
            os.close(descriptor)
    except OSError as error:
        return data[: max(0, written - len(begin))].count(b"\n"), error
    return data.count(b"\n"), None


def _open(path: Path) -> int:
    try:
        return _opened(path)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _opened(path)


def _opened(path: Path) -> int:
    descriptor = os.open(path, _FLAGS, _MODE)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(None, "is no ordinary file", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _ends_a_line(descriptor: int) -> bool:
    """Return whether a file is empty, or its last line complete."""
    if os.fstat(descriptor).st_size == 0:
        return True
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1) == b"\n"


def _warn(path: Path, reason: str) -> None:
    import logging  # rarely needed, and slow to import

    message = "The log %s cannot be written: %s. The memory works on without it."
    logging.getLogger(__name__).warning(message, path, reason)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}"[:200]
