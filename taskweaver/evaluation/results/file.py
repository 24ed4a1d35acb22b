"""Files of results: JSON Lines, appended as cases end, so that a run that was killed goes on."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
from pathlib import Path
from typing import Self

from taskweaver.evaluation.errors import EvaluationError
from taskweaver.evaluation.results.row import ResultRow
from taskweaver.utils.files import read_text

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC


def read_rows(path: Path) -> list[ResultRow]:
    """Return the rows of a file; of a case that stands in it several times all of them.

    A line without an end at the end of the file was not written whole, and does not count.

    Raises:
        EvaluationError: If the file cannot be read, or a line of it is no row.
    """
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        raise EvaluationError(str(path), f"cannot be read: {error}") from error
    lines = text.split("\n")
    rows = []
    for number, line in enumerate(lines[:-1], start=1):
        if line.strip():
            rows.append(_row(path, number, line))
    return rows


def newest_rows(rows: list[ResultRow]) -> dict[str, ResultRow]:
    """Return the last row of each case, by its name."""
    return {row.case: row for row in rows}


def _row(path: Path, number: int, line: str) -> ResultRow:
    try:
        return ResultRow.from_dict(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise EvaluationError(f"{path}, line {number}", f"is no result: {error}.") from error


class ResultFile:
    """A file of results that is written; one process at a time. A context manager.

    Attributes:
        path: The file.
        rows: The rows that were there before.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, take its lock, and cut off a line that was not written whole.

        Raises:
            EvaluationError: If it cannot be opened, another process writes it, or it holds
                anything but results.
        """
        self.path = path
        self._writing = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, _FLAGS, 0o600)
        except OSError as error:
            raise EvaluationError(str(path), f"cannot be written: {error.strerror}.") from error
        try:
            self._lock()
            self.rows = read_rows(path)
            self._cut()
        except BaseException:
            os.close(self._fd)
            raise

    def _lock(self) -> None:
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            raise EvaluationError(str(self.path), "is no ordinary file.")
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise EvaluationError(str(self.path), "another evaluation writes to it.") from error

    def _cut(self) -> None:
        """Remove the half of a line at the end."""
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._fd, whole)

    def add(self, row: ResultRow) -> None:
        """Append a row.

        Raises:
            EvaluationError: If it cannot be written.
        """
        line = json.dumps(row.to_dict(), ensure_ascii=False) + "\n"
        data = line.encode("utf-8", "replace")
        with self._writing:
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError as error:
                problem = f"cannot be written: {error.strerror}."
                raise EvaluationError(str(self.path), problem) from error

    def __enter__(self) -> Self:
        """Return the file itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the file."""
        os.close(self._fd)
