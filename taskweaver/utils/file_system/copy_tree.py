"""Copies of folders that sandboxed code can write, within limits.

Files share storage where the file system can let them: such a copy costs nothing.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import BinaryIO

from taskweaver.utils.file_system.safe_fs import DEEPEST, Folder, copy_content

_FICLONE = 0x40049409
"""Linux's request to let a file share the storage of another (``man ioctl_ficlone``)."""

_OTHERS_CANNOT_WRITE = 0o755
_OWNER_RIGHTS = 0o600
_NOT_WRITABLE = 0o555


def share_storage(old: int, new: int) -> bool:
    """Let an open empty file share the storage of an open file, and return the success."""
    import fcntl  # not on Windows, where this module can be imported

    try:
        fcntl.ioctl(new, _FICLONE, old)
    except OSError:  # another file system, or one that cannot
        return False
    return os.fstat(new).st_size == os.fstat(old).st_size


class CopyTooLarge(Exception):
    """More than may be copied.

    Attributes:
        limit: The limit, with its unit.
        is_of_bytes: Whether it is the limit of `CopyRules.most_bytes`.
    """

    def __init__(self, limit: str, *, is_of_bytes: bool = False) -> None:
        super().__init__(f"more than {limit}")
        self.limit = limit
        self.is_of_bytes = is_of_bytes


@dataclass(frozen=True, slots=True)
class CopyRules:
    """Rules of a copy.

    Attributes:
        most_bytes: Bytes that are really copied; files that share storage are free.
        most_entries: Files, folders and links.
        left_out: Name of an entry at the top that is not copied.
        is_read_only: Whether the files of the copy lose the right to write.
    """

    most_bytes: int
    most_entries: int = 1_000_000
    left_out: str = ""
    is_read_only: bool = False


def copy_tree(source: Folder, target: Folder, rules: CopyRules) -> None:
    """Copy the content of a folder into an empty folder, which no second process may write to.

    Links and holes stay links and holes; pipes, sockets and devices are left out, and so is
    whatever disappears meanwhile. Files keep their times, and their modes without the rights of
    others to write and without set-user-id bits. A file that grows is copied up to the size it had.

    Raises:
        CopyTooLarge: If there is more than the rules allow, or folders are nested too deeply.
        OSError: If it cannot be done; names the entry by its path below the folder.
    """
    _Copy(target, rules).folder(source, target, ())


class _Copy:
    """A copy in progress: the room that is left, and the copies of files with several names."""

    def __init__(self, top: Folder, rules: CopyRules) -> None:
        self._top = top
        self._rules = rules
        self._linked: dict[tuple[int, int], str] = {}
        self._bytes_left, self._entries_left = rules.most_bytes, rules.most_entries

    def folder(self, source: Folder, target: Folder, place: tuple[str, ...]) -> None:
        """Copy the entries of an open folder. `place` has the names of folders from the top."""
        if len(place) > DEEPEST:
            raise CopyTooLarge(f"{DEEPEST} levels of folders, in {'/'.join(place[:3])[:200]}")
        for name in source.names():
            self._entries_left -= 1
            if self._entries_left < 0:
                raise CopyTooLarge(f"{self._rules.most_entries:,} files")
            if not place and name == self._rules.left_out:
                continue
            try:
                self._entry(source, target, name, place)
            except FileNotFoundError:
                if source.stat(name) is not None:
                    raise
            except PermissionError as error:
                if error.filename != name:  # it is named already
                    raise
                path = "/".join((*place, name))
                raise PermissionError(error.errno, error.strerror, path) from error

    def _entry(self, source: Folder, target: Folder, name: str, place: tuple[str, ...]) -> None:
        facts = os.stat(name, dir_fd=source.fd, follow_symlinks=False)
        if stat.S_ISLNK(facts.st_mode):
            target.make_link(name, source.link_target(name))
        elif stat.S_ISDIR(facts.st_mode):
            with source.folder(name) as old:
                target.make_folder(name, facts.st_mode & _OTHERS_CANNOT_WRITE | 0o700)
                with target.folder(name) as new:
                    self.folder(old, new, (*place, name))
        elif stat.S_ISREG(facts.st_mode):
            with source.open_file(name) as old_file:
                opened = os.fstat(old_file.fileno())
                key = opened.st_dev, opened.st_ino
                first = self._linked.get(key)
                if first is not None:
                    self._top.link(first, target, name)
                    return
                with target.create_file(name) as new_file:
                    self._file(old_file, new_file)
                if opened.st_nlink > 1:
                    self._linked[key] = "/".join((*place, name))

    def _file(self, old: BinaryIO, new: BinaryIO) -> None:
        facts = os.fstat(old.fileno())
        if not share_storage(old.fileno(), new.fileno()):
            self._bytes_left -= min(facts.st_size, facts.st_blocks * 512)  # holes are free
            if self._bytes_left < 0:
                raise CopyTooLarge(f"{self._rules.most_bytes >> 20:,} MiB", is_of_bytes=True)
            copy_content(old, new)
        os.utime(new.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))
        mode = facts.st_mode & _OTHERS_CANNOT_WRITE | _OWNER_RIGHTS
        os.fchmod(new.fileno(), mode & _NOT_WRITABLE if self._rules.is_read_only else mode)
