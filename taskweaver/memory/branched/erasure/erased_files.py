"""Removes texts from the files beside a memory: its logs, the final memory and the page.

A text is overwritten where it stands with a mark of the same length. So a log keeps its lines and
its readers, a process that appends to it is not disturbed, no copy of the file is made, and an
erasure that was interrupted is finished by the next one. Copies of the memory, and files of the
folders that a caller names, are not changed: those that hold a text are listed.
"""

from __future__ import annotations

import errno
import glob
import html
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from taskweaver.memory.branched.erasure.finding import FormFinder, Span
from taskweaver.memory.branched.erasure.needles import ERASED, Needles
from taskweaver.utils.sqlite_files import SIDE_FILES

_BESIDE = ("memory_database.html", "memory_*.jsonl")
_COPIES = ("*.partial", "*.damaged*", "*.backup", "*.bak", "*.original*")
_MOST_BYTES = 1 << 30
_READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ_WRITE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Untouched:
    """A file that may still hold an erased text, and the reason why it was left as it is."""

    path: str
    reason: str


class ErasedFiles:
    """One erasure in the files of a memory.

    Attributes:
        changed: Files that held a text.
        untouched: Files that may still hold one.
    """

    def __init__(
        self,
        path: Path,
        logs: Path,
        folders: Sequence[Path],
        *,
        names: Sequence[str] = (),
        is_dry: bool,
    ) -> None:
        """Take the memory, the folder of its logs, and folders that are only looked through.

        `names` are further files beside the memory, or in the folder `memory` there; with `is_dry`
        the texts are only looked for.
        """
        self._path = path
        self._logs = logs
        self._folders = folders
        self._patterns = (*_BESIDE, *map(glob.escape, names))
        self._is_dry = is_dry
        self.changed: set[str] = set()
        self.untouched: dict[str, str] = {}

    def erase(self, needles: Needles) -> None:
        """Overwrite the texts in all files; files that cannot be changed are noted."""
        if not needles:
            return
        finder = FormFinder(needles.forms())
        for path in dict.fromkeys(self._own()):
            self._guarded(path, partial(self._overwrite, path, finder))
        for path, reason in self._others():
            self._guarded(path, partial(self._look, path, finder, reason))

    def _guarded(self, path: Path, act: Callable[[], object]) -> None:
        try:
            act()
        except FileNotFoundError:
            return  # removed since it was listed
        except OSError as error:
            self.untouched[str(path)] = f"it cannot be changed: {error.strerror or error}"

    def _own(self) -> Iterator[Path]:
        """Yield the files that the memory wrote, and may overwrite."""
        folder = self._path.parent
        for home in (folder, folder / "memory"):
            for pattern in self._patterns:
                yield from sorted(home.glob(pattern))
        yield from sorted(self._logs.glob("memory_*.jsonl*"))

    def _others(self) -> Iterator[tuple[Path, str]]:
        """Yield the files that are only looked through, each with the reason to list it."""
        own = self._path.resolve()
        memory = {own, *(own.with_name(own.name + ending) for ending in SIDE_FILES)}
        for ending in _COPIES:
            for path in sorted(self._path.parent.glob(glob.escape(self._path.stem) + ending)):
                yield path, "it is a copy of the memory, and holds the text"
        for given in self._folders:
            if not given.is_dir():
                self.untouched[str(given)] = "it is no folder"
            for path in sorted(given.rglob("*")):
                if not path.is_dir() and path.resolve() not in memory:
                    yield path, "it holds the text"

    def _overwrite(self, path: Path, finder: FormFinder) -> None:
        """Overwrite the texts in one file."""
        data = _content(path)
        found = finder.spans(data)
        if not found:
            if finder.spans(_unescaped(path, data)):
                self.untouched[str(path)] = "it holds the text with escaped characters"
            return
        if not path.stat().st_mode & stat.S_IWUSR:
            self.untouched[str(path)] = "it is protected against writing, and holds the text"
            return
        self.changed.add(str(path))
        if not self._is_dry:
            _mark(path, data, found)

    def _look(self, path: Path, finder: FormFinder, reason: str) -> None:
        """List a file that holds a text."""
        if str(path) in self.changed:
            return
        data = _content(path)
        if finder.spans(data + _unescaped(path, data)):
            self.untouched.setdefault(str(path), reason)


def _content(path: Path) -> bytes:
    """Return the bytes of a file; none if it is a link or no ordinary file.

    Raises:
        OSError: If it cannot be read, or is too large.
    """
    if path.is_symlink():
        return b""
    with os.fdopen(os.open(path, _READ_ONLY), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            return b""
        if found.st_size > _MOST_BYTES:
            raise OSError(errno.EFBIG, "it is larger than 1 GiB")
        return file.read()


def _unescaped(path: Path, data: bytes) -> bytes:
    """Return the content of a Markdown file without its escapes; nothing of another file."""
    if path.suffix != ".md":
        return b""
    return html.unescape(data.decode("utf-8", "replace").replace("\\", "")).encode()


def _mark(path: Path, data: bytes, places: Sequence[Span]) -> None:
    """Overwrite places of a file with marks, stars where a mark has no room."""
    with os.fdopen(os.open(path, _READ_WRITE), "r+b") as file:
        for start, end in places:
            length = end - start
            file.seek(start)
            if file.read(length) == data[start:end]:
                file.seek(start)
                mark = ERASED.encode().ljust(length) if length >= len(ERASED) else b"*" * length
                file.write(mark)
        file.flush()
        os.fsync(file.fileno())
