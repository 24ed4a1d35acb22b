"""Log files: a failure loses lines, is counted, and never raises.

A line that a full disk cut off is ended before the next one, so it spoils no other. Lines that
cannot be written are dropped and counted; the first line that can be written again gives the
number and the reason.
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from taskweaver.utils.redact import redact_data

_encode = json.JSONEncoder(ensure_ascii=True, default=str).encode
_VALUES = ("value", "value_preview")
MARKS = ("branch_id", "node_id", "phase", "run_id")
"""Fields of all lines that say where an operation belongs."""


def encoded(line: Mapping[str, Any]) -> str:
    """Return a line as JSON without line breaks.

    Raises:
        ValueError, RecursionError: If it is not plain data, or too deep.
    """
    return _encode(line)


def without_secret_value(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an entry of a key and a value, with the value of a secret's key masked."""
    key = entry.get("key")
    given = [name for name in _VALUES if isinstance(entry.get(name), str)]
    if not isinstance(key, str) or not given:
        return entry
    hidden = {name: next(iter(redact_data({key: entry[name]}).values())) for name in given}
    return {**entry, **hidden}


_MODE = 0o600
# Without O_NONBLOCK the opening of a pipe waits for its reader.
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC


class LogFolder:
    """The log files in a folder. The folder and the files are made by the first write.

    All methods may be called from any thread, and several processes may write the same files.
    """

    def __init__(self, folder: Path) -> None:
        """Keep the folder in mind, which may be missing or unusable."""
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
            import logging  # rarely needed, and slow to import

            message = "The log %s cannot be written: %s. The memory works on without it."
            logging.getLogger(__name__).warning(message, self.folder / name, _reason(error))

    def _note(self, name: str) -> list[str]:
        """Return the line that gives the number of lost lines, if there are any."""
        count = self._lost.get(name, 0)
        if not count:
            return []
        details = {"count": count, "reason": self._reasons[name]}
        line = {"ts": time.time(), "op": "log_lines_lost", "layer": "internal"}
        return [encoded({**line, "memory_type": "log", **dict.fromkeys(MARKS), "details": details})]


def _append(path: Path, data: bytes) -> tuple[int, OSError | None]:
    """Append whole lines to a file, and return how many were written, and an error."""
    written, begin = 0, b""
    try:
        descriptor = _open(path)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(None, "is no ordinary file", str(path))
            if found.st_size:
                os.lseek(descriptor, -1, os.SEEK_END)
                begin = b"" if os.read(descriptor, 1) == b"\n" else b"\n"
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
        return os.open(path, _FLAGS, _MODE)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, _FLAGS, _MODE)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}"[:200]
