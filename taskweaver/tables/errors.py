"""Errors of reading tables."""

from __future__ import annotations

from taskweaver.errors import TaskWeaverError


class TableError(TaskWeaverError, ValueError):
    """A file cannot be read as a table. The error's text is the reason, in one sentence."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows; the calls inside of TaskWeaver help no reader."""
        return [f"{type(self).__name__}: {self}"]


class MissingTableError(TableError, FileNotFoundError):
    """There is no file of this name, or no part of it has the name."""
