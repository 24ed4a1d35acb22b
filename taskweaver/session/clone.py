"""Copies a working directory: shares storage where the file system can, else within a limit."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from taskweaver.session.errors import SessionError
from taskweaver.utils.hostile import open_inside
from taskweaver.utils.reflink import share_storage


def clone_folder(source: Path, target: Path, *, limit_bytes: int) -> None:
    """Copy a folder with its files and folders; links stay links, pipes and the like are left out.

    Args:
        source: The folder.
        target: Where the copy goes; it must not exist.
        limit_bytes: Most bytes that are really copied; files that share storage are free.

    Raises:
        SessionError: If there is more to copy, or it cannot be done. Nothing is left behind.
    """
    budget = _Budget(source.resolve(), limit_bytes)
    partial = target.with_name(target.name + ".partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(source, partial, symlinks=True, ignore=_special, copy_function=budget.copy)
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

    def __init__(self, root: Path, limit_bytes: int) -> None:
        self._root = root
        self._limit = self._left = limit_bytes

    def copy(self, source: str, target: str) -> None:
        """Copy one file: share its storage, or copy its bytes."""
        with open_inside(self._root, Path(source)) as old, Path(target).open("xb") as new:
            facts = os.fstat(old.fileno())
            if not share_storage(old.fileno(), new.fileno()):
                self._left -= facts.st_size
                if self._left < 0:
                    raise SessionError(
                        f"The working directory holds more than {self._limit >> 20} MiB, and this"
                        " file system cannot share storage. Remove files, or raise"
                        " session.fork_limit_mb."
                    )
                shutil.copyfileobj(old, new, 1 << 20)
                new.flush()
            os.utime(new.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))
            os.fchmod(new.fileno(), facts.st_mode & 0o755)


def _special(folder: str, names: list[str]) -> set[str]:
    """Return what is neither a file, a folder nor a link: opening it may never end."""
    kinds = ((name, Path(folder, name).lstat().st_mode) for name in names)
    return {
        name
        for name, mode in kinds
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
    }
