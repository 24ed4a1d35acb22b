"""File operations in folders that sandboxed code can write.

Code may swap files, folders and links there at any moment, also while this process works in the
same folder. Every operation here is relative to an open directory (`Folder`), follows no link,
opens ordinary files only, and replaces an entry only where its name says so. Modules that work
there use these operations and no others; an import rule and `tests/test_house.py` check it.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePath
from typing import BinaryIO, Self

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# To pass through a directory needs the right to search it, not to read it.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_REPLACE = 1
_CHUNK_BYTES = 1 << 20
_REMOVE_S = 60.0
_NOWHERE = -1
"""Open folder of an absolute path, which the system ignores."""
_REFUSED = frozenset({"", ".", "..", "/"})
DEEPEST = 64
"""Most levels of folders that are listed."""


def is_plain_name(name: str) -> bool:
    """Return whether a text can be the name of a file in a folder, and stays in one line."""
    return name not in {"", ".", ".."} and name.isprintable() and not set(name) & {"/", "\\"}


def open_ordinary(path: Path | str, flags: int = 0) -> BinaryIO:
    """Open an ordinary file of the user's, or a link to a file, for reading, but wait at no pipe.

    `flags` are further ones of ``open(2)``.

    Raises:
        OSError: If it cannot be opened, or is no ordinary file.
    """
    return _ordinary(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags), str(path))


def _ordinary(fd: int, name: str) -> BinaryIO:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "is no ordinary file", name)
    return os.fdopen(fd, "rb")


class Folder:
    """An open directory, to be closed or used as a context manager.

    Paths given to its operations are relative and have ``/`` between their parts; an empty part,
    ``.`` or ``..`` is refused. All operations raise OSError when the system refuses, and when a
    part of a path is a link.

    Attributes:
        fd: File descriptor of the directory.
    """

    def __init__(self, fd: int) -> None:
        """Take charge of an open directory."""
        self.fd = fd

    @classmethod
    def at(cls, path: Path) -> Self:
        """Open a directory by an absolute path, no part of which may be a link.

        Resolve the path before code runs that can write to one of its folders, never afterwards.
        """
        if not path.is_absolute() or ".." in path.parts or "\0" in str(path):
            raise OSError(errno.EINVAL, "is no absolute path", str(path))
        *parents, name = path.parts
        with ExitStack() as stack:
            return cls(os.open(name, _FOLDER, dir_fd=_passed(stack, _NOWHERE, parents)))

    def __enter__(self) -> Self:
        """Return the folder itself."""
        return self

    def close(self, *_: object) -> None:
        """Close the directory. Safe to call again."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    __exit__ = close

    def folder(self, path: PurePath | str = "") -> Self:
        """Open a directory below this one. An empty path opens this directory again."""
        if str(path) in {"", "."}:
            return type(self)(os.open(".", _FOLDER, dir_fd=self.fd))
        with self._holder(path) as (place, name):
            return type(self)(os.open(name, _FOLDER, dir_fd=place))

    @contextmanager
    def _holder(self, path: PurePath | str) -> Iterator[tuple[int, str]]:
        """Give the open directory that holds an entry, and the entry's name."""
        *parents, name = _parts(path)
        with ExitStack() as stack:
            yield _passed(stack, self.fd, parents), name

    def make_folder(self, path: PurePath | str, mode: int = 0o700) -> None:
        """Make a directory, whose parent must exist."""
        with self._holder(path) as (place, name):
            os.mkdir(name, mode & 0o777, dir_fd=place)

    def make_folders(self, path: PurePath | str) -> None:
        """Make a directory and missing parents. A link at the end is kept."""
        if str(path) != "." and self.stat(path) is None:
            self.make_folders(PurePath(path).parent)
            with suppress(FileExistsError):
                self.make_folder(path)

    def names(self) -> list[str]:
        """Return the names of the entries, sorted."""
        return sorted(os.listdir(self.fd))  # noqa: PTH208 - an open directory has no path

    def stat(self, path: PurePath | str) -> os.stat_result | None:
        """Return the facts about an entry, for a link about the link, or None without an entry."""
        try:
            with self._holder(path) as (place, name):
                return os.stat(name, dir_fd=place, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open_file(self, path: PurePath | str) -> BinaryIO:
        """Open an ordinary file for reading, without waiting at a pipe."""
        with self._holder(path) as (place, name):
            return _ordinary(os.open(name, _FILE, dir_fd=place), str(path))

    def create_file(self, path: PurePath | str) -> BinaryIO:
        """Create a file and open the file for writing. FileExistsError if the name is taken."""
        with self._holder(path) as (place, name):
            return os.fdopen(os.open(name, _CREATE, 0o600, dir_fd=place), "wb")

    @contextmanager
    def replacing(self, path: PurePath | str) -> Iterator[BinaryIO]:
        """Write a file, under the final name when the whole file is written.

        A file or link of that name is replaced; until then it is untouched.
        """
        draft = f".{secrets.token_hex(8)}.partial"
        with (
            self._holder(path) as (place, name),
            os.fdopen(os.open(draft, _CREATE, 0o644, dir_fd=place), "wb") as file,
        ):
            try:
                yield file
                file.flush()
                os.replace(draft, name, src_dir_fd=place, dst_dir_fd=place)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=place)
                raise

    def make_link(self, path: PurePath | str, target: Path | str) -> None:
        """Make a symbolic link. FileExistsError if the name is taken."""
        with self._holder(path) as (place, name):
            os.symlink(target, name, dir_fd=place)

    def link(self, path: PurePath | str, target: Folder, new: PurePath | str) -> None:
        """Give a file a second name, a hard link. FileExistsError if the name is taken."""
        with self._holder(path) as (old, name), target._holder(new) as (place, new_name):
            os.link(name, new_name, src_dir_fd=old, dst_dir_fd=place, follow_symlinks=False)

    def link_target(self, path: PurePath | str) -> str:
        """Return the text of a symbolic link."""
        with self._holder(path) as (place, name):
            return os.readlink(name, dir_fd=place)

    def move(self, path: PurePath | str, target: Folder, new: PurePath | str) -> None:
        """Move an entry. FileExistsError if the new name is taken."""
        with self._holder(path) as (old, name), target._holder(new) as (place, new_name):
            import ctypes  # slow to load; needed here alone

            libc = ctypes.CDLL(None, use_errno=True)
            renameat2 = getattr(libc, "renameat2", None)
            if renameat2 is None:  # macOS, and other C libraries
                if target.stat(new) is not None:  # an entry made from now on is replaced
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new_name)
                os.rename(name, new_name, src_dir_fd=old, dst_dir_fd=place)
            elif renameat2(old, os.fsencode(name), place, os.fsencode(new_name), _NO_REPLACE) < 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), new_name)

    def remove(self, path: PurePath | str) -> None:
        """Remove an entry with everything below. Nothing happens without an entry.

        Depth is unlimited: a folder is emptied by moving the folders in its folders up to it.

        Raises:
            OSError: If the system refuses, or processes add entries faster than they go.
        """
        with self._holder(path) as (place, name):
            if _unlink(place, name):
                return
            _allow(place, name)
            with Folder(os.open(name, _FOLDER, dir_fd=place)) as top:
                _empty(top, time.monotonic() + _REMOVE_S)
            os.rmdir(name, dir_fd=place)

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the ordinary files below, sorted, by path, in at most `DEEPEST` levels of folders.

        Entries that disappear meanwhile, and names that are not printable, are left out.
        """
        for path, facts in self.walk():
            if stat.S_ISREG(facts.st_mode):
                yield path, facts

    def walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the entries below that are no folders, as `files` does."""
        yield from _walk(self, "", 0)


def _walk(folder: Folder, prefix: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    for name in folder.names():
        facts = folder.stat(name) if name.isprintable() else None
        if facts is None:
            continue
        if not stat.S_ISDIR(facts.st_mode):
            yield prefix + name, facts
        elif depth < DEEPEST:
            try:
                inner = folder.folder(name)
            except OSError:
                continue  # moved away, replaced by a link, or not readable
            with inner:
                yield from _walk(inner, f"{prefix}{name}/", depth + 1)


def copy_in(source: Path, folder: Folder, name: PurePath | str) -> None:
    """Copy an ordinary file of the user's into a folder. A file of that name is replaced.

    The copy has the time of the file: receipts find by it the files that code has changed since.

    Raises:
        OSError: If it cannot be read or written, or is no ordinary file.
    """
    with open_ordinary(source) as file, folder.replacing(name) as target:
        copy_content(file, target)
        facts = os.fstat(file.fileno())
        os.utime(target.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))


def copy_content(source: BinaryIO, target: BinaryIO) -> None:
    """Copy the bytes that an open file has now to a new one, without later additions.

    Holes stay holes, where the system tells them.
    """
    old, new = source.fileno(), target.fileno()
    at, size = 0, os.fstat(old).st_size
    while at < size:
        at, end = _next_data(old, at, size)
        while at < end and (data := os.pread(old, min(end - at, _CHUNK_BYTES), at)):
            at += os.pwrite(new, data, at)
        if at < end:  # it has become shorter
            size = at
    os.ftruncate(new, size)


def _next_data(file: int, at: int, size: int) -> tuple[int, int]:
    """Return begin and end of the data of a file after a position, as far as its size."""
    try:
        begin = min(os.lseek(file, at, os.SEEK_DATA), size)
        return begin, min(os.lseek(file, begin, os.SEEK_HOLE), size) if begin < size else size
    except OSError as error:
        return (size if error.errno == errno.ENXIO else at), size  # no data, or an old file system


def _parts(path: PurePath | str) -> tuple[str, ...]:
    parts = tuple(path.split("/")) if isinstance(path, str) else path.parts
    if not parts or not _REFUSED.isdisjoint(parts) or "\0" in str(path):
        raise OSError(errno.EINVAL, "is no path inside of a folder", str(path))
    return parts


def _passed(stack: ExitStack, place: int, parents: Iterable[str]) -> int:
    """Open folders, each in the one before, until the end of a stack, and return the last."""
    for part in parents:
        place = os.open(part, _PASS, dir_fd=place)
        stack.callback(os.close, place)
    return place


def _unlink(place: int, name: str) -> bool:
    """Remove an entry unless the entry is a folder, and return whether the name is free."""
    try:
        os.unlink(name, dir_fd=place)
    except FileNotFoundError:
        return True
    except OSError as error:
        # Linux reports EISDIR for a folder, POSIX EPERM.
        if error.errno not in {errno.EISDIR, errno.EPERM}:
            raise
        return False
    return True


def _empty(top: Folder, deadline: float) -> None:
    """Remove the entries of a folder until the folder is empty, or a deadline."""
    while (entries := top.names()) and time.monotonic() < deadline:
        for entry in entries:
            if not _unlink(top.fd, entry):
                _flatten(top, entry)


def _flatten(top: Folder, name: str) -> None:
    """Remove a folder in an open folder, moving the inner folders up to the open folder."""
    try:
        _allow(top.fd, name)
        inner = top.folder(name)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            return  # swapped or gone: the next listing shows which
        raise
    with inner:
        for entry in inner.names():
            if not _unlink(inner.fd, entry):
                _allow(inner.fd, entry)
                with suppress(FileNotFoundError):
                    beside = f"{secrets.token_hex(12)}.removed"
                    os.rename(entry, beside, src_dir_fd=inner.fd, dst_dir_fd=top.fd)
    try:
        os.rmdir(name, dir_fd=top.fd)
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY}:
            raise


def _allow(place: int, name: str) -> None:
    """Give the owner of a folder back the rights that removing entries needs."""
    try:
        facts = os.stat(name, dir_fd=place, follow_symlinks=False)
        if not stat.S_ISDIR(facts.st_mode) or facts.st_mode & 0o700 == 0o700:
            return
        folder = os.open(name, _PASS, dir_fd=place)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        # An open O_PATH descriptor takes no fchmod; its link in /proc leads to this very folder.
        Path(f"/proc/self/fd/{folder}").chmod(0o700)
    finally:
        os.close(folder)
