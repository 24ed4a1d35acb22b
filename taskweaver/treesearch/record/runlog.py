"""The log of a run: its events, a line of JSON each, on disk before they count.

The log defines the run. It is resumed by reading the log: nodes that had not finished are made
again, and a last line that was cut off by the end of the process is as if it had never been.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from taskweaver.treesearch.errors import RunInUse, SearchError, system_errors
from taskweaver.utils.files import create_private


class RunLog:
    """A run's log, open for writing by one process. Close it."""

    def __init__(self, path: Path) -> None:
        """Open it; it is made when it is not there.

        Raises:
            RunInUse: If another process has it open.
            SearchError: If it cannot be opened, or is no log.
        """
        self._path = path
        self._lock = threading.Lock()
        with system_errors(f"{path} cannot be opened"):
            path.parent.mkdir(parents=True, exist_ok=True)
            create_private(path)
            self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise RunInUse(
                f"Another process works on the run {path.parent.name}.",
                "Wait for it, or start a run of another name.",
            ) from error
        try:
            self.entries = self._read()
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> list[dict[str, Any]]:
        self._file.seek(0)
        data = self._file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            self._file.truncate(whole)
        return _entries(self._path, data[:whole])

    def add(self, kind: str, **data: Any) -> Mapping[str, Any]:
        """Add an entry, and return it as it will be read; it is on disk when this returns.

        Raises:
            SearchError: If it cannot be written; nothing of it is then in the file.
        """
        return self._write(kind, data, is_synced=True)

    def note(self, kind: str, **data: Any) -> None:
        """Add an entry that outlives the process; if the machine goes down, the last may be lost.

        It is on disk at the latest with the next that is added.

        Raises:
            SearchError: As `add`.
        """
        self._write(kind, data, is_synced=False)

    def _write(self, kind: str, data: Mapping[str, Any], *, is_synced: bool) -> Mapping[str, Any]:
        # Nothing is masked: a resumed run goes on with the programs that are in here.
        whole = {"t": kind, **data}
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"), default=_plain)
        line = text.encode("utf-8", "replace")
        entry: dict[str, Any] = json.loads(line)
        with self._lock:
            end = self._file.seek(0, os.SEEK_END)
            try:
                self._file.write(line + b"\n")
                self._file.flush()
                if is_synced:
                    os.fsync(self._file.fileno())
            except OSError as error:
                self._take_back(end)
                raise SearchError(
                    f"{self._path} cannot be written: {error.strerror}.",
                    "Make room, and go on with `search --resume`.",
                ) from error
            self.entries.append(entry)
        return entry

    def _take_back(self, end: int) -> None:
        """Open the file anew, without a half-written line: a buffer would write it later."""
        handle = os.dup(self._file.fileno())  # keeps the lock
        try:
            with suppress(OSError):  # the same lack of room
                self._file.close()
            os.ftruncate(handle, end)
        finally:
            self._file = os.fdopen(handle, "a+b")

    def close(self) -> None:
        """Close the log and release its lock; safe to call again."""
        self._file.close()

    def __enter__(self) -> Self:
        """Return the log itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def is_worked_on(path: Path) -> bool:
    """Return whether a process has the log of a run open for writing."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # until it is closed
    except OSError:
        return True
    return False


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a log, also while a process works on it.

    Raises:
        SearchError: If it cannot be read.
    """
    with system_errors(f"There is no run in {path.parent}"):
        data = path.read_bytes()
    return _entries(path, data[: data.rfind(b"\n") + 1])


def _entries(path: Path, data: bytes) -> list[dict[str, Any]]:
    entries = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            entry = json.loads(line)
            entry["t"]  # each has its kind
        except (ValueError, RecursionError, TypeError, LookupError) as error:
            raise SearchError(
                f"{path}, line {number}, is not of a log: {error!r:.200}.",
                "Restore the file, or start a new run.",
            ) from error
        entries.append(entry)
    return entries


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)
