"""The repair of a damaged session: a new memory file with every row that can be read.

Nothing is deleted. The damaged file stays beside the new one, and rows that can be read and do not
fit any more are written to a file of their own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from taskweaver.memory.branched.errors import BranchedMemoryError
from taskweaver.memory.branched.repair.salvage import UnfitRow, readable_rows, salvage
from taskweaver.session.errors import SessionError
from taskweaver.session.health import check_session
from taskweaver.session.storage.folder import (
    MEMORY_FILE,
    locked,
    memory_copy,
    memory_source,
    require_plain_folder,
    row_problem,
)
from taskweaver.utils.files import PRIVATE, write_text
from taskweaver.utils.sqlite_files import SIDE_FILES

_NEW_FILE = "memory.repaired.sqlite"


@dataclass(frozen=True, slots=True)
class RepairedSession:
    """Outcome of a repair.

    Attributes:
        session_id: Id of the session.
        damaged_file: The file as it was, beside the new one.
        saved: Number of rows that were saved, by table.
        lost: Number of rows that are known to have existed and cannot be read, by table.
        damaged: Tables of which a part could not be read.
        unfit: Number of rows that can be read and not be used.
        unfit_file: Where these rows are; None when there are none.
        remade: Branches and rounds that were made anew because other rows belong to them.
    """

    session_id: str
    damaged_file: Path
    saved: dict[str, int]
    lost: dict[str, int]
    damaged: tuple[str, ...]
    unfit: int
    unfit_file: Path | None
    remade: tuple[str, ...]


def repair_session(folder: Path) -> RepairedSession:
    """Replace the memory file of a damaged session by one with every row that can be read.

    Raises:
        SessionError: If the session is sound, was written by a newer version, holds links, or the
            new file cannot be written.
        SessionInUse: If another process has it open.
    """
    require_plain_folder(folder)
    health = check_session(folder)
    if health.is_memory_sound:
        others = f" Other findings: {'; '.join(health.findings)}" if health.findings else ""
        raise SessionError(
            f"The memory of session {folder.name} is sound: there is nothing to repair.{others}"
        )
    if health.condition in {"newer", "unchecked"}:
        raise SessionError(f"Session {folder.name} is not repaired: {health.findings[0]}")
    with locked(folder):
        try:
            return _repaired(folder)
        except (OSError, BranchedMemoryError) as error:
            raise SessionError(f"Session {folder.name} cannot be repaired: {error}") from error


def _repaired(folder: Path) -> RepairedSession:
    source = memory_source(folder)
    new = folder / _NEW_FILE
    _remove_new(new)  # of a repair that was cut off
    try:
        with memory_copy(source) as copy:
            tables, clock = readable_rows(copy)
            result = salvage(tables, clock, new, fits=row_problem)
    except BaseException:
        _remove_new(new)
        raise
    number = next(n for n in count(1) if not _kept(folder, n).exists())
    unfit_file = _write_unfit(folder, number, result.unfit)
    kept = source
    if source.name == MEMORY_FILE:
        kept = _kept(folder, number)
        for ending in ("", *SIDE_FILES):
            beside = folder / f"{MEMORY_FILE}{ending}"
            if os.path.lexists(beside):
                beside.rename(kept.with_name(kept.name + ending))
    new.rename(folder / MEMORY_FILE)
    return RepairedSession(
        folder.name,
        kept,
        dict(result.saved),
        dict(result.lost),
        tuple(result.damaged),
        len(result.unfit),
        unfit_file,
        tuple(result.remade),
    )


def _remove_new(new: Path) -> None:
    for ending in ("", *SIDE_FILES):
        new.with_name(new.name + ending).unlink(missing_ok=True)


def _kept(folder: Path, number: int) -> Path:
    return folder / f"memory.damaged-{number}.sqlite"


def _write_unfit(folder: Path, number: int, rows: Sequence[UnfitRow]) -> Path | None:
    if not rows:
        return None
    file = folder / f"memory.unfit-{number}.jsonl"
    lines = [json.dumps(asdict(row), ensure_ascii=False, default=repr) for row in rows]
    write_text(file, "\n".join(lines) + "\n", mode=PRIVATE)
    return file
