"""Effects of opening a project, hashes of its code, and the links that lead out of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple

_MOST_BYTES = 64 << 20
"""Largest file whose content is hashed; of a larger one, size and time of change are."""

_CACHES = "__pycache__"


class TrustEffect(NamedTuple):
    """An effect of opening a project that needs consent.

    Attributes:
        line: The key with its value, the code or the link, as it is shown.
        content: All that it depends on, as JSON can hold it.
        keys: The configuration keys that are removed where consent is missing.
        is_link: Whether it is a link that leads out of the folder.
    """

    line: str
    content: Any
    keys: tuple[str, ...]
    is_link: bool = False


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a resolved path is a resolved folder or lies below it."""
    return path == folder or str(path).startswith(os.path.join(folder, ""))  # noqa: PTH118


def digest_of_file(path: Path) -> str:
    """Return the hash of a file's content; empty if it is no regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not S_ISREG(facts.st_mode):
            return ""
        if facts.st_size > _MOST_BYTES:
            return f"{facts.st_size} bytes, changed at {facts.st_mtime_ns}"
        return hashlib.sha256(file.read(_MOST_BYTES + 1)).hexdigest()


def digests_below(folder: Path) -> dict[str, str]:
    """Return the hash of each file below a folder, by its path there; links are followed once."""
    found: dict[str, str] = {}
    seen: set[tuple[int, int]] = set()
    for here, names, files in os.walk(folder, followlinks=True):
        names[:] = [
            name for name in sorted(names) if name != _CACHES and _is_new(Path(here, name), seen)
        ]
        for name in sorted(files):
            path = Path(here, name)
            found[str(path.relative_to(folder))] = digest_of_file(path)
    return found


def _is_new(path: Path, seen: set[tuple[int, int]]) -> bool:
    try:
        facts = path.stat()
    except OSError:
        return False
    place = (facts.st_dev, facts.st_ino)
    is_new = place not in seen
    seen.add(place)
    return is_new


def links_out(folder: Path, root: Path, *, is_deep: bool) -> Iterator[tuple[Path, Path]]:
    """Yield the links in a folder, or below it, that leave the resolved `root`, with their targets.

    A folder that is not there has none.
    """
    waiting = [folder]
    while waiting:
        try:
            entries = sorted(os.scandir(waiting.pop()), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                target = Path(os.path.realpath(entry.path))
                if not is_inside(target, root):
                    yield Path(entry.path), target
            elif is_deep and entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
