"""What the tests of the branched memory share."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from taskweaver.memory.branched import MemoryConfig, MemoryManager

Open = Callable[..., MemoryManager]
QUIET = MemoryConfig(memory_log_enabled=False)


def put_empty(path: Path, use_fts: Any = "auto") -> Path:
    """Put a memory with nothing in it where there is no file; return the path.

    To make its tables takes longer than most tests of what is written to them. `use_fts` says
    whether it has an index.
    """
    if not path.exists():
        path.touch(0o600)
        path.write_bytes(_empty(use_fts))
    return path


@cache
def _empty(use_fts: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.sqlite"
        MemoryManager(path, MemoryConfig(memory_log_enabled=False, use_fts=use_fts)).close()
        return path.read_bytes()


def run_sql(path: Path, *statements: str) -> None:
    """Change a file as another program would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


class Clock:
    """A time that only moves when told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now
