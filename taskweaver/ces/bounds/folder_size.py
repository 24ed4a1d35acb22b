"""The size of folders that code writes, measured a little at a time.

Nothing is followed: each folder is opened by the descriptor of its parent, and links count as
themselves. A folder that cannot be measured (no permission to read, or too deep) is estimated by
the space that its file system has lost since the measuring began.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Generator
from pathlib import Path

_BLOCK_BYTES = 512
_MOST_DEPTH = 200
_REST = 20  # a pass is followed by a rest of this many times its length
_SHORTEST_REST_S = 1.0
_CHANGE_BYTES = 1 << 20
_FEW_ENTRIES = 500  # they are measured whenever the size matters: that takes about 3 ms
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW


class FolderSize:
    """The size of some folders together. Close the object."""

    def __init__(self) -> None:
        self._roots: list[Path] = []
        self._free_at_first: dict[Path, int] = {}
        self._measured = self._partial = 0
        self._entries = 0
        self._links: set[tuple[int, int]] = set()
        self._is_partly_unseen = False
        self._pass: Generator[None] | None = None
        self._pass_s = 0.0
        self._rests_until = 0.0
        self._free_at_pass: int | None = None

    def add(self, root: Path) -> None:
        """Measure a folder too, unless a measured folder contains this one."""
        if {root, *root.parents}.isdisjoint(self._roots):
            self._roots.append(root)
            self._free_at_first[root] = _free_bytes(root)
            self._rests_until = 0.0
            self._free_at_pass = None

    @property
    def bytes(self) -> int:
        """Known size: that of the last pass, or of this one if it is larger already."""
        return max(self._measured, self._partial)

    def advance(self, seconds: float) -> None:
        """Go on measuring for a time, unless the last pass was just before and saw many entries."""
        is_quick = self._entries <= _FEW_ENTRIES
        if self._pass is not None or is_quick or time.monotonic() >= self._rests_until:
            self._go_on(seconds)

    def settle(self, seconds: float, limit_bytes: int) -> bool:
        """Measure now, as far as the time allows, if the size may be on the other side of a limit.

        Folders with many entries are taken to have grown by no more than their file systems have
        lost since the last pass: that misses their growth while others free space.

        Returns:
            Whether the file systems have lost so much that the limit may be passed.
        """
        may_be_over = self._may_have_passed(limit_bytes)
        if may_be_over or self._entries <= _FEW_ENTRIES:
            self.close()  # what a pass under way has seen may be old
            self._go_on(seconds)
        return may_be_over

    def _may_have_passed(self, limit_bytes: int) -> bool:
        if self._free_at_pass is None:
            return True
        lost = self._free_at_pass - sum(map(_free_bytes, self._roots))
        if self.bytes > limit_bytes:
            return abs(lost) >= _CHANGE_BYTES
        return self.bytes + lost > limit_bytes

    def close(self) -> None:
        """Break a pass off."""
        if self._pass is not None:
            self._pass.close()
            self._pass = None

    def _go_on(self, seconds: float) -> None:
        began = time.monotonic()
        if self._pass is None:
            self._pass, self._partial, self._pass_s = self._walk_all(), 0, 0.0
            self._entries = 0
            self._links.clear()
            self._is_partly_unseen = False
            self._free_at_pass = sum(map(_free_bytes, self._roots))
        for _ in self._pass:
            if time.monotonic() - began >= seconds:
                self._pass_s += time.monotonic() - began
                return
        now = time.monotonic()
        self._pass = None
        self._measured = self._partial
        self._rests_until = now + max(_SHORTEST_REST_S, _REST * (self._pass_s + now - began))

    def _walk_all(self) -> Generator[None]:
        for root in self._roots:
            yield from self._walk(str(root), None, 0)
            if self._is_partly_unseen:
                lost = self._free_at_first[root] - _free_bytes(root)
                self._partial = max(self._partial, lost)

    def _walk(self, name: str, parent: int | None, depth: int) -> Generator[None]:
        try:
            folder = os.open(name, _OPEN, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError:
            self._is_partly_unseen = True
            return
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    yield
                    if not self._count(entry):
                        continue
                    if depth < _MOST_DEPTH:
                        yield from self._walk(entry.name, folder, depth + 1)
                    else:
                        self._is_partly_unseen = True
        except OSError:
            self._is_partly_unseen = True
        finally:
            os.close(folder)

    def _count(self, entry: os.DirEntry[str]) -> bool:
        """Count an entry of a folder, and return whether the entry is a folder."""
        self._entries += 1
        try:
            facts = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return False  # it was removed meanwhile
        is_folder = stat.S_ISDIR(facts.st_mode)
        if facts.st_nlink > 1 and not is_folder:
            key = facts.st_dev, facts.st_ino
            if key in self._links:
                return False
            self._links.add(key)
        self._partial += facts.st_blocks * _BLOCK_BYTES
        return is_folder


def _free_bytes(folder: Path) -> int:
    """Return the free space of a folder's file system, or 0 where unknown."""
    try:
        facts = os.statvfs(folder)
    except OSError:
        return 0
    return facts.f_bavail * facts.f_frsize
