"""Paths with their links followed."""

from __future__ import annotations

import errno
import os


def without_links(path: str) -> str:
    """Return a path with all links followed; what is not there may be its end.

    A loop of links cannot be followed. `os.path.realpath` then drops it together with a ``..``
    behind it, and the rest may be a link that was not followed.

    Raises:
        ValueError: If the path has a loop of links.
    """
    found = os.path.realpath(path)
    is_followed = found == path or os.path.realpath(found) == found  # unchanged: no links
    if not is_followed or _is_loop(found):
        raise ValueError("a path without a loop of links")
    return found


def _is_loop(path: str) -> bool:
    try:
        os.stat(path)  # noqa: PTH116 - many paths are asked for while a project opens
    except OSError as error:
        return error.errno == errno.ELOOP
    return False
