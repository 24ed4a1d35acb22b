"""Refusal of session folders in which another person placed links, pipes or devices.

The program appends to files of a session and reads others without being asked; in a folder that
was copied from elsewhere, each may be a link to a file of the user's, or a pipe that never ends.
Code in the sandbox reaches only the working folders, so a folder that was checked stays as it is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from taskweaver.session.errors import SessionError

_FLAT = ("logs", "state", "state-untrusted", "state/chunks", "state/rounds")
"""Folders whose entries the program itself writes."""
_MOST_NAMED = 3


def folder_problems(folder: Path) -> list[str]:
    """Return the entries of a session's folder that the program must not touch, a line each."""
    if folder.is_symlink():
        return [f"{folder} is a link"]
    return list(_problems(folder))


def _problems(folder: Path) -> Iterator[str]:
    for place in (folder, *(folder / name for name in _FLAT)):
        if place.is_symlink() or not place.is_dir():
            continue
        try:
            with os.scandir(place) as entries:
                yield from _entry_problems(entries, is_top=place == folder)
        except PermissionError as error:
            yield f"{place} cannot be read: {error.strerror}"


def _entry_problems(entries: Iterable[os.DirEntry[str]], *, is_top: bool) -> Iterator[str]:
    for entry in entries:
        try:
            facts = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # a process that has the session open removed it since
        problem = _problem(facts, is_top=is_top)
        if problem:
            yield f"{entry.path} {problem}"


def _problem(facts: os.stat_result, *, is_top: bool) -> str:
    if stat.S_ISLNK(facts.st_mode):
        return "is a link"
    if stat.S_ISDIR(facts.st_mode):
        return ""
    if not stat.S_ISREG(facts.st_mode):
        return "is no ordinary file"
    # States that are equal share one file, so links between them are the program's own.
    return "has a second name elsewhere" if is_top and facts.st_nlink > 1 else ""


def require_plain_folder(folder: Path) -> None:
    """Raise if a session's folder holds links, pipes or devices.

    Raises:
        SessionError: If it does; names them.
    """
    problems = folder_problems(folder) if os.path.lexists(folder) else []
    if problems:
        raise SessionError(
            f"Session {folder.name} is not opened: {'; '.join(problems[:_MOST_NAMED])}."
            " Remove what this program did not make, or copy the content in its place."
        )
