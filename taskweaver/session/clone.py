"""Copies a working directory: shares storage where the file system can, else within a limit."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from taskweaver.session.errors import SessionError

_FICLONE = 0x40049409
"""Linux's request to let a file share the storage of another (``man ioctl_ficlone``)."""


def clone_folder(source: Path, target: Path, *, limit_bytes: int) -> None:
    """Copy a folder with all in it; links stay links.

    Args:
        source: The folder.
        target: Where the copy goes; it must not exist.
        limit_bytes: Most bytes that are really copied; files that share storage are free.

    Raises:
        SessionError: If there is more to copy, or it cannot be done. Nothing is left behind.
    """
    budget = _Budget(limit_bytes)
    partial = target.with_name(target.name + ".partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(source, partial, symlinks=True, copy_function=budget.copy)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.rename(target)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise SessionError(f"{source} cannot be copied: {error}") from error
    except SessionError:
        shutil.rmtree(partial, ignore_errors=True)
        raise


class _Budget:
    """Copies files while there is room."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = self._left = limit_bytes

    def copy(self, source: str, target: str) -> None:
        """Copy one file: share its storage, or copy its bytes."""
        with Path(source).open("rb") as old, Path(target).open("wb") as new:
            is_shared = share_storage(old.fileno(), new.fileno())
        if not is_shared:
            self._left -= Path(source).stat().st_size
            if self._left < 0:
                raise SessionError(
                    f"The working directory holds more than {self._limit >> 20} MiB, and this file"
                    " system cannot share storage. Remove files, or raise session.fork_limit_mb."
                )
            shutil.copyfile(source, target)
        shutil.copystat(source, target)


def share_storage(old: int, new: int) -> bool:
    """Let an empty file share the storage of another, both open; return whether that is done."""
    try:
        fcntl.ioctl(new, _FICLONE, old)
    except OSError:  # another file system, or one that cannot
        return False
    return os.fstat(new).st_size == os.fstat(old).st_size
