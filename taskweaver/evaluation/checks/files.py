"""Checks of files in the working directory, which sandboxed code can write."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

from taskweaver.evaluation.checks.answers import shown
from taskweaver.evaluation.checks.check import Examiner, Observed, first_problem
from taskweaver.utils.file_system.safe_fs import Folder

_MOST_BYTES = 4 << 20


def read_made(seen: Observed, name: str) -> bytes | None:
    """Return the beginning of a file of the working directory; None if there is none."""
    try:
        with Folder.at(seen.cwd.resolve()) as folder, folder.open_file(name) as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class FileCheck:
    """A file that must be there at the end of the round.

    Attributes:
        name: Its name in the working directory.
        pattern: Regular expression that its text must match; None for any.
        columns: Columns of a CSV file that must be there.
        rows: Number of rows of a CSV file below its header; None for any.
    """

    name: str
    pattern: re.Pattern[str] | None = None
    columns: tuple[str, ...] = ()
    rows: int | None = None
    needs_answer = False

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if the file is as it should be."""
        content = read_made(seen, self.name)
        if content is None:
            return f"there is no file {self.name}"
        text = content.decode("utf-8-sig", "replace")
        return first_problem([self._text_problem(text), self._table_problem(text)])

    def _text_problem(self, text: str) -> str:
        if self.pattern is None or self.pattern.search(text):
            return ""
        return f"{self.name} does not match {self.pattern.pattern!r}: {shown(text)}"

    def _table_problem(self, text: str) -> str:
        if not self.columns and self.rows is None:
            return ""
        try:
            header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
        except (csv.Error, ValueError) as error:
            return f"{self.name} is no CSV table: {error}"
        missing = [name for name in self.columns if name not in header]
        if missing:
            return f"{self.name} lacks the columns {', '.join(missing)}; it has {', '.join(header)}"
        if self.rows is not None and len(rows) != self.rows:
            return f"{self.name} has {len(rows)} rows, not {self.rows}"
        return ""


@dataclass(frozen=True, slots=True)
class NoFileCheck:
    """A file that must not be there."""

    name: str
    needs_answer = False

    def problem(self, seen: Observed, _: Examiner) -> str:
        """Return the problem; empty if it is not there."""
        return "" if read_made(seen, self.name) is None else f"there is a file {self.name}"
