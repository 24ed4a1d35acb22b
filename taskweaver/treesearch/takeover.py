"""What a node takes over from its parent, and what is found in a node's folder.

Experiments write there, so nothing in it is trusted: links are copied and never followed, special
files are left out, and depth, number and size are bounded.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.job import RESULT_FILE
from taskweaver.utils.reflink import share_storage

WORKING = RESULT_FILE.partition("/")[0]
"""Folder of what a run writes."""
TAKE_OVER_BYTES = 8 << 30
"""Most bytes that are really copied; files that share storage are free."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN_RIGHTS = 0o777
_DEEPEST = 64
_MOST_ENTRIES = 100_000
_MOST_LISTED = 1000
_CHUNK_BYTES = 1 << 20
_REMOVE_S = 60.0


def take_over(parent: Path, workspace: Path, *, limit_bytes: int = TAKE_OVER_BYTES) -> None:
    """Copy a parent's files, all but those of its run; links stay links.

    Args:
        parent: Folder of the parent.
        workspace: Folder of the node; it must not be there yet.
        limit_bytes: Most bytes that are really copied.

    Raises:
        SearchError: If there is more to copy, or it cannot be done; `workspace` is not made.
    """
    partial = workspace.with_name(f"{workspace.name}.partial")
    try:
        remove(partial)
        partial.mkdir(parents=True)
        copy_folder(parent, partial, limit_bytes=limit_bytes, left_out=WORKING)
        partial.rename(workspace)
    except OSError as error:
        remove(partial)
        raise SearchError(f"{parent} cannot be taken over: {error}.") from error
    except SearchError:
        remove(partial)
        raise


def copy_folder(source: Path, target: Path, *, limit_bytes: int, left_out: str = "") -> None:
    """Copy what is in a folder into another, which is empty; links stay links.

    Args:
        source: The folder.
        target: The other one.
        limit_bytes: Most bytes that are really copied.
        left_out: Name of an entry that is not copied.

    Raises:
        SearchError: If there is more to copy.
        OSError: If it cannot be done.
    """
    copy = _Copy(limit_bytes)
    old = os.open(source.resolve(), _FOLDER)
    try:
        new = os.open(target, _FOLDER)
        try:
            copy.folder(old, new, depth=0, left_out=left_out)
        finally:
            os.close(new)
    finally:
        os.close(old)


class _Copy:
    """Copies folders while there is room."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = self._left = limit_bytes
        self._entries = 0

    def folder(self, source: int, target: int, *, depth: int, left_out: str = "") -> None:
        """Copy what is in one open folder to another."""
        if depth > _DEEPEST:
            raise SearchError(f"There are folders more than {_DEEPEST} deep.")
        for name in os.listdir(source):
            self._entries += 1
            if self._entries > _MOST_ENTRIES:
                raise SearchError(f"There are more than {_MOST_ENTRIES:,} files.")
            if name == left_out:
                continue
            facts = os.stat(name, dir_fd=source, follow_symlinks=False)
            if stat.S_ISLNK(facts.st_mode):
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            elif stat.S_ISDIR(facts.st_mode):
                self._folder(source, target, name, depth)
            elif stat.S_ISREG(facts.st_mode):
                self._file(source, target, name)

    def _folder(self, source: int, target: int, name: str, depth: int) -> None:
        os.mkdir(name, dir_fd=target)
        old, new = os.open(name, _FOLDER, dir_fd=source), os.open(name, _FOLDER, dir_fd=target)
        try:
            self.folder(old, new, depth=depth + 1)
        finally:
            os.close(old)
            os.close(new)

    def _file(self, source: int, target: int, name: str) -> None:
        with (
            os.fdopen(os.open(name, _FILE, dir_fd=source), "rb") as old,
            os.fdopen(os.open(name, _NEW, 0o600, dir_fd=target), "wb") as new,
        ):
            facts = os.fstat(old.fileno())
            if not share_storage(old.fileno(), new.fileno()):
                self._left -= facts.st_size
                if self._left < 0:
                    raise SearchError(
                        f"The files take more than {self._limit >> 20} MiB.",
                        "Keep large files in working, which is not taken over.",
                    )
                shutil.copyfileobj(old, new, _CHUNK_BYTES)
            new.flush()
            # `make` goes by the time of files.
            os.utime(new.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))
            os.fchmod(new.fileno(), (facts.st_mode & _PLAIN_RIGHTS) | 0o600)


def list_files(workspace: Path, below: str = "") -> list[str]:
    """Return the plain files in a folder, relative to it, sorted; the first thousand.

    Args:
        workspace: The folder.
        below: Folder in it to look in; empty for all of it.
    """
    found: list[str] = []
    try:
        start = os.open(workspace.resolve(), _FOLDER)
    except OSError:
        return found
    try:
        inner = os.open(below, _FOLDER, dir_fd=start) if below else os.dup(start)
    except OSError:  # there is none, or a link in its place
        return found
    finally:
        os.close(start)
    try:
        for path in _files(inner, f"{below}/" if below else "", 0):
            found.append(path)
            if len(found) >= _MOST_LISTED:
                break
    finally:
        os.close(inner)
    return found


def _files(folder: int, prefix: str, depth: int) -> Iterator[str]:
    for name in sorted(os.listdir(folder)):
        if not name.isprintable():  # no text, or made to confuse
            continue
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISREG(mode):
            yield prefix + name
        elif stat.S_ISDIR(mode) and depth < _DEEPEST:
            inner = os.open(name, _FOLDER, dir_fd=folder)
            try:
                yield from _files(inner, f"{prefix}{name}/", depth + 1)
            finally:
                os.close(inner)


def read_inside(workspace: Path, path: str, max_bytes: int) -> bytes | None:
    """Return the bytes of a plain file in a folder; None when there is none.

    Args:
        workspace: The folder.
        path: Relative to it; no part of it may be a link.
        max_bytes: Largest file.

    Raises:
        ValueError: If there is something else, or it is larger.
    """
    *parts, name = path.split("/")
    folder = os.open(workspace.resolve(), _FOLDER)
    try:
        for part in parts:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        fd = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{path} is no plain file: {error.strerror}") from error
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError(f"{path} is no plain file")
    with os.fdopen(fd, "rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"{path} is larger than {max_bytes:,} bytes")
    return data


def empty_working(workspace: Path) -> None:
    """Make the folder of a run, empty.

    Raises:
        SearchError: If it cannot be emptied.
    """
    working = workspace / WORKING
    remove(working)
    try:
        working.mkdir()
    except OSError as error:
        raise SearchError(f"{working} cannot be emptied: {error}.") from error


def remove(path: Path) -> None:
    """Remove whatever is at a path, as far as that can be done; a link, not what it leads to."""
    if path.is_symlink() or path.exists():
        # It goes deeper than a recursion here could.
        subprocess.run(["rm", "-rf", "--", str(path)], timeout=_REMOVE_S, check=False)
