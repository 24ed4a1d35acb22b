"""Copies of files of the original, as they were before they were migrated."""

from __future__ import annotations

import filecmp
import sqlite3
from contextlib import closing
from pathlib import Path

from taskweaver.memory.branched.errors import StoreUnwritable
from taskweaver.utils.files import create_private


def keep_original(connection: sqlite3.Connection, path: Path) -> Path:
    """Copy a file to `*.original` beside it, and return the place of the copy.

    A copy is there whole or not at all, whenever the process is killed. A copy that is there
    already is never replaced: the same rows are kept once, others get a number in their name.

    Args:
        connection: Open on the file; no other connection writes meanwhile.
        path: The file.

    Raises:
        StoreUnwritable: If the copy cannot be written.
    """
    partial = path.with_name(f"{path.name}.original.partial")
    try:
        partial.unlink(missing_ok=True)  # of a process that was killed: no other one copies now
        create_private(partial)
        with closing(sqlite3.connect(partial)) as copy:
            connection.backup(copy)
        kept = _place(partial, path)
        partial.replace(kept)
    except OSError as error:
        raise StoreUnwritable(f"{path} cannot be copied: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return kept


def _place(partial: Path, path: Path) -> Path:
    """Return the first place that is free, or holds the same copy."""
    number = 1
    while True:
        kept = path.with_name(f"{path.name}.original{'' if number == 1 else f'-{number}'}")
        if not kept.exists() or filecmp.cmp(partial, kept, shallow=False):
            return kept
        number += 1
