"""Private folders of processes, with sockets and a connection file.

A sandboxed kernel must be able to write to its folder, and so must all code in its sandbox. The
folder is therefore prepared where that code cannot reach it, and moved to its place when complete.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.system.platform import has_ended, pid_namespace

FOLDER = "tw-"
"""Private folders are called this, the owner's process id, and something random.

In a container, the namespace of the process id follows it.
"""
_INNER, _STAGING = "in", "new"
_MOST_BYTES = 46
"""Longest path in which private folders can hold a socket, whose address has at most 107."""
_FIRST_NAMESPACE = 0xEFFFFFFC
"""Number of the first namespace of process ids, the same on every machine."""


def private_folder(parent: Path | None = None) -> Path:
    """Make a temporary folder that only this user can look into. `sweep_folders` removes leftovers.

    Without `parent` it is in the folder for temporary files.
    """
    parent = parent or _temporary_files()
    prefix = f"{FOLDER}{os.getpid()}{_namespace()}-"
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent)).resolve()


def _temporary_files() -> Path:
    """Return the folder for temporary files, or ``/tmp`` where the path is too long."""
    place = Path(tempfile.gettempdir()).resolve()
    is_long = len(os.fsencode(place)) > _MOST_BYTES and os.access("/tmp", os.W_OK)
    return Path("/tmp") if is_long else place


def _namespace() -> str:
    """Return the mark of this namespace of process ids: a container may share the folder."""
    number = pid_namespace()
    return "" if number in {0, _FIRST_NAMESPACE} else f".{number:x}"


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """Make a private folder for the time of the block (see `private_folder`)."""
    folder = private_folder(parent)
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove a private folder with all contents.

    A folder that cannot be removed now stays for `sweep_folders`.
    """
    with suppress(OSError), Folder.at(folder.parent) as parent:
        parent.remove(folder.name)


def sweep_folders() -> None:
    """Remove the private folders of killed owners."""
    for folder in _temporary_files().glob(f"{FOLDER}*-*"):
        owner, dot, namespace = folder.name.removeprefix(FOLDER).partition("-")[0].partition(".")
        if dot + namespace == _namespace() and has_ended(owner):
            remove_folder(folder)  # another user's stays


class Homes:
    """Place in which the folders of processes are made.

    Attributes:
        folder: Folder that holds them when they are complete.
        staging: Folder in which they are prepared.
    """

    def __init__(self, folder: Path | None = None, staging: Path | None = None) -> None:
        """Name the place.

        Args:
            folder: Folder that holds them; None is the one for temporary files.
            staging: Folder beside it in which they are prepared; None without a sandbox,
                where they need no hiding.
        """
        self.folder = folder or _temporary_files()
        self.staging = staging or self.folder

    @classmethod
    def sandboxed(cls) -> Self:
        """Make the place for a sandbox, to be removed, in which code may write to `folder`."""
        root = private_folder()
        homes = cls(root / _INNER, root / _STAGING)
        homes.folder.mkdir(mode=0o700)
        homes.staging.mkdir(mode=0o700)
        return homes

    def new(self) -> Home:
        """Prepare a folder, to be removed when not needed any more."""
        return Home(self)

    def remove(self) -> None:
        """Remove the place that `sandboxed` made."""
        remove_folder(self.folder.parent)


class Home:
    """The folder of a process, to be removed, or used as a context manager.

    Attributes:
        draft: Where its files are made.
        path: Where it is once it is published.
    """

    def __init__(self, homes: Homes) -> None:
        self.draft = Path(tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-", dir=homes.staging))
        self.path = homes.folder / self.draft.name
        self._is_published = self.draft == self.path

    def publish(self) -> None:
        """Move the complete folder to its place.

        Raises:
            OSError: If it cannot be moved, or code has taken its name.
        """
        if self._is_published:
            return
        with Folder.at(self.draft.parent) as staging, Folder.at(self.path.parent) as place:
            staging.move(self.draft.name, place, self.path.name)
        self._is_published = True

    def remove(self) -> None:
        """Remove the folder. Safe to call again."""
        remove_folder(self.path if self._is_published else self.draft)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()
