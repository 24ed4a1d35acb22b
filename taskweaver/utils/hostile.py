"""Files in folders that code can write to, which may put anything in our way at any moment.

A link, a pipe, a device, or a second name of a file that lies elsewhere is neither read nor
written through.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_plain_name(name: str) -> bool:
    """Return whether a text can be the name of a file in a folder, and stays in one line."""
    return name not in {"", ".", ".."} and name.isprintable() and not set(name) & {"/", "\\"}


def open_ordinary(path: Path | str, flags: int = 0) -> BinaryIO:
    """Open an ordinary file for reading; never waits for the other end of a pipe.

    Args:
        path: The file.
        flags: More of the system's flags.

    Raises:
        OSError: If it cannot be opened, or is no ordinary file.
    """

    def opener(name: str, usual: int) -> int:
        return os.open(name, usual | flags | os.O_NONBLOCK)

    file = open(path, "rb", opener=opener)  # noqa: SIM115 - a path has no opener; returned
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{path} is no ordinary file")
    return file


def open_inside(root: Path, path: Path) -> BinaryIO:
    """Open a file for reading.

    Args:
        root: The folder, without links.
        path: The file.

    Raises:
        OSError: If it cannot be opened, is no ordinary file, or lies elsewhere.
    """
    file = open_ordinary(path, os.O_NOFOLLOW)
    try:
        place = Path(f"/proc/self/fd/{file.fileno()}")
        # A folder on the way may have become a link since it was listed.
        if place.is_symlink() and not place.readlink().is_relative_to(root):
            raise OSError(f"{path} is outside {root}")
    except BaseException:
        file.close()
        raise
    return file


@contextmanager
def replacing(folder: Path, name: str) -> Iterator[BinaryIO]:
    """Write a file, under its name when the whole of it is written; what had the name goes.

    Args:
        folder: The folder; not a link.
        name: The name, see `is_plain_name`.

    Raises:
        OSError: If it cannot be written; what had the name is then untouched.
    """
    place = os.open(folder, _FOLDER)
    draft = f".{secrets.token_hex(8)}.partial"
    try:
        with os.fdopen(os.open(draft, _CREATE, 0o644, dir_fd=place), "wb") as file:
            try:
                yield file
                file.flush()
                os.replace(draft, name, src_dir_fd=place, dst_dir_fd=place)
            except BaseException:
                os.unlink(draft, dir_fd=place)
                raise
    finally:
        os.close(place)


def copy_in(source: Path, folder: Path, name: str) -> None:
    """Copy an ordinary file of the user's into a folder.

    Raises:
        OSError: If it cannot be read or written, or is no ordinary file.
    """
    with open_ordinary(source) as file, replacing(folder, name) as target:
        shutil.copyfileobj(file, target, 1 << 20)
