"""Rows of a session's memory file, read from a copy: the file itself is never changed."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from taskweaver.memory.branch_log import require_texts
from taskweaver.memory.branched.repair import Row, readable_rows
from taskweaver.memory.post import Post
from taskweaver.utils.file_system.safe_fs import copy_content, open_ordinary
from taskweaver.utils.sqlite_files import SIDE_FILES, require_plain

MEMORY_FILE = "memory.sqlite"
DAMAGED_FILES = "memory.damaged-*.sqlite"
"""Names of files that a repair put aside."""
_STATES = {"created", "finished", "failed"}
_SPARE_BYTES = 1 << 20


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

    Yields:
        The copy.

    Raises:
        OSError: If it cannot be read or copied, or a file beside it is a link or unsafe.
    """
    require_plain(source)
    endings = ("", *(ending for ending in SIDE_FILES if ending != "-shm"))
    files = {ending: source.with_name(source.name + ending) for ending in endings}
    files = {ending: file for ending, file in files.items() if not ending or file.exists()}
    with TemporaryDirectory(prefix="taskweaver-session-") as folder:
        _require_room(Path(folder), sum(file.stat().st_size for file in files.values()))
        for ending, beside in files.items():
            copy = Path(folder) / f"{MEMORY_FILE}{ending}"
            with open_ordinary(beside) as file, copy.open("wb") as target:
                copy_content(file, target)
        yield Path(folder) / MEMORY_FILE


def _require_room(folder: Path, size: int) -> None:
    """Raise unless the disk holds a copy and the files SQLite writes beside it.

    Rows that SQLite cannot read because the disk is full would pass for damaged ones.
    """
    needed = 2 * size + _SPARE_BYTES
    if shutil.disk_usage(folder).free < needed:
        raise OSError(
            errno.ENOSPC,
            f"no room for a copy of the memory file in {folder.parent}: {needed >> 20:,} MiB are"
            " needed. Make room, or set TMPDIR to a folder on a larger disk",
        )


def readable_rounds(folder: Path) -> tuple[int, str]:
    """Return the number of readable rounds of a damaged session, and its first message.

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
