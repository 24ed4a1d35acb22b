"""Rows of a session's memory file, read from a copy: the file itself is never changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from taskweaver.memory.branch_log import require_texts
from taskweaver.memory.branched.damaged_rows import Row
from taskweaver.memory.branched.salvage import readable_rows
from taskweaver.memory.post import Post
from taskweaver.utils.safe_fs import open_ordinary
from taskweaver.utils.sqlite_files import SIDE_FILES, require_plain

MEMORY_FILE = "memory.sqlite"
DAMAGED_FILES = "memory.damaged-*.sqlite"
"""Names of files that a repair put aside."""
_STATES = {"created", "finished", "failed"}


def memory_source(folder: Path) -> Path:
    """Return the memory file of a session; one that a repair put aside if that was cut off."""
    file = folder / MEMORY_FILE
    if not file.exists():
        kept = sorted(folder.glob(DAMAGED_FILES))
        file = kept[-1] if kept else file
    return file


@contextmanager
def memory_copy(source: Path) -> Iterator[Path]:
    """Copy a memory file and its write-ahead log to a private folder.

    Args:
        source: The file.

    Yields:
        The copy.

    Raises:
        OSError: If it cannot be read or copied, or a file beside it is a link or unsafe.
    """
    require_plain(source)
    with TemporaryDirectory(prefix="taskweaver-session-") as folder:
        for ending in ("", *(ending for ending in SIDE_FILES if ending != "-shm")):
            beside = source.with_name(source.name + ending)
            if not ending or beside.exists():
                copy = Path(folder) / f"{MEMORY_FILE}{ending}"
                with open_ordinary(beside) as file, copy.open("wb") as target:
                    shutil.copyfileobj(file, target, 1 << 20)
        yield Path(folder) / MEMORY_FILE


def readable_rounds(folder: Path) -> tuple[int, str]:
    """Return how many rounds of a damaged session can be read, and what was asked first.

    Raises:
        OSError: If nothing of the file can be read.
    """
    with memory_copy(memory_source(folder)) as copy:
        tables, _ = readable_rows(copy)
    rounds = tables["rounds"].rows if "rounds" in tables else {}
    queries = [rounds[key]["user_query"] for key in sorted(rounds, key=lambda key: f"{key:>20}")]
    texts = [query for query in queries if isinstance(query, str)]
    return len(rounds), texts[0] if texts else ""


def row_problem(table: str, row: Row) -> str:
    """Return why a row cannot be part of a conversation; empty when it can."""
    try:
        if table == "posts":
            require_texts(Post.from_dict(json.loads(str(row["body"]))))
        elif table == "round_ends" and row["state"] not in _STATES:
            return f"{row['state']!r:.40} is no state of a round"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return f"it is no post: {error!r:.200}"
    return ""
