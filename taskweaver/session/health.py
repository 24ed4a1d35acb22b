"""The check of a stored session: its memory, conversation, stored states and working folders."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from taskweaver.ces.state_folder import MOST_BYTES, StateDamaged, StateFolder, read_manifest
from taskweaver.memory.branch_log import BranchLog
from taskweaver.memory.branched.config import MemoryConfig
from taskweaver.memory.branched.errors import BranchedMemoryError, StoreTooNew, StoreUnwritable
from taskweaver.memory.branched.store import BranchedMemory
from taskweaver.session.errors import SessionError, SessionInUse
from taskweaver.session.storage.folder import (
    LOCK_FILE,
    MEMORY_FILE,
    folder_problems,
    locked,
    memory_copy,
    readable_rounds,
)
from taskweaver.session.storage.stored_sessions import require_own_memory
from taskweaver.utils.file_system.safe_fs import open_ordinary

Condition = Literal["sound", "damaged", "newer", "open", "unchecked"]
_OF_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE}
_MOST_FINDINGS = 50
_QUIET = MemoryConfig(memory_log_enabled=False, synchronous="NORMAL")  # for a copy


@dataclass(frozen=True, slots=True)
class SessionHealth:
    """Outcome of the check of a session.

    Attributes:
        session_id: Its id.
        condition: ``sound``, ``damaged``, ``newer`` (written by a newer version of the program),
            ``open`` (in use by another process, and not checked) or ``unchecked`` (its memory
            file cannot be read by this user, or there is no room for a copy of it).
        findings: Problems, a line each, those of the memory file first.
        rounds: Number of rounds that can be read.
        is_memory_sound: Whether none of the findings is about the memory file.
    """

    session_id: str
    condition: Condition
    findings: tuple[str, ...] = ()
    rounds: int = 0
    is_memory_sound: bool = False


def check_session(folder: Path) -> SessionHealth:
    """Check a stored session; nothing in its folder is changed."""
    findings = folder_problems(folder)
    if any(line.startswith(f"{folder / LOCK_FILE} ") for line in findings):
        return SessionHealth(folder.name, "damaged", tuple(findings))
    try:
        lock = locked(folder, is_written=False) if (folder / LOCK_FILE).exists() else None
    except SessionInUse as error:
        return SessionHealth(folder.name, "open", (str(error),))
    except SessionError as error:
        findings.append(str(error))
        lock = None
    try:
        return _checked(folder, findings)
    finally:
        if lock is not None:
            lock.close()


def _checked(folder: Path, findings: list[str]) -> SessionHealth:
    condition: Condition = "damaged"
    rounds, memory_findings = 0, list[str]()
    problems = _state_problems(folder) if not findings else []
    copy = memory = folder / MEMORY_FILE
    try:
        require_own_memory(folder)
        with memory_copy(memory) as copy:
            memory_findings, rounds = _memory_problems(copy)
    except StoreTooNew as error:
        condition = "newer"
        memory_findings = [str(error)]
    except (SessionError, BranchedMemoryError, OSError) as error:
        memory_findings = [str(error).replace(str(copy), str(memory))]
        if _is_of_machine(error):
            condition = "unchecked"
        else:
            with suppress(OSError, BranchedMemoryError):
                rounds, _ = readable_rounds(folder)
    findings = [*memory_findings, *findings, *problems]
    return SessionHealth(
        folder.name,
        condition if findings else "sound",
        tuple(findings[:_MOST_FINDINGS]),
        rounds,
        not memory_findings,
    )


def _is_of_machine(error: Exception) -> bool:
    """Return whether the disk or the rights, and not the file, are why it cannot be checked."""
    return isinstance(error, StoreUnwritable) or getattr(error, "errno", None) in _OF_MACHINE


def _memory_problems(copy: Path) -> tuple[list[str], int]:
    """Return the problems of a copy of the memory file, and the number of readable rounds.

    Raises:
        BranchedMemoryError: If it cannot be opened.
    """
    with BranchedMemory(copy, _QUIET) as store:
        problems = list(store.verify().problems)
        seen: set[str] = set()
        for branch in store.branches():
            try:
                seen.update(round_.id for round_ in BranchLog(store, branch.id).rounds())
            except BranchedMemoryError as error:
                problems.append(f"branch {branch.id}: {error}")
    return problems, len(seen)


def _state_problems(folder: Path) -> list[str]:
    """Return the problems of the stored states."""
    states = StateFolder(folder / "state", 1)
    if not states.folder.is_dir() or states.folder.is_symlink() or not states.is_trusted:
        return []
    problems = []
    for path in sorted(states.folder.glob("rounds/*/*.json")):
        try:
            with open_ordinary(path, os.O_NOFOLLOW) as file:
                manifest = read_manifest(file.read(MOST_BYTES))
        except (StateDamaged, OSError) as error:
            problems.append(f"stored state {path.parent.name}/{path.stem}: {error}")
            continue
        if not all((states.folder / "chunks" / name).is_file() for name in manifest.chunks):
            problems.append(f"stored state {path.parent.name}/{path.stem}: parts of it are missing")
    return problems
