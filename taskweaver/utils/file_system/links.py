"""Paths with their links followed."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def absolute_path(text: str, base: Path) -> str:
    """Return a path as an absolute one, its ``~`` expanded and all links followed.

    `base` is an absolute folder, where a relative path starts.

    Raises:
        ValueError: If the home directory is not known, or as `without_links`; the text has the
            valid form.
    """
    try:
        return without_links(os.path.join(base, Path(text).expanduser()))  # noqa: PTH118
    except RuntimeError:  # a `~` that leads to no home
        raise ValueError("a path whose home directory is known") from None


def without_links(path: str) -> str:
    """Return a path with all links followed; what is not there may be its end.

    A loop of links cannot be followed. `os.path.realpath` then drops it together with a ``..``
    behind it, and the rest may be a link that was not followed.

    Raises:
        ValueError: If the path has a loop of links.
    """
    found = os.path.realpath(path)
    # Where the path was left as it is, asking again would give the same.
    is_stable = found == path or os.path.realpath(found) == found
    if not is_stable or _is_loop(found):
        raise ValueError("a path without a loop of links")
    return found


def _is_loop(path: str) -> bool:
    try:
        os.stat(path)  # noqa: PTH116 - many paths are asked for while a project opens
    except OSError as error:
        return error.errno == errno.ELOOP
    return False
