"""Paths with their links followed."""

from __future__ import annotations

import errno
import os


def without_links(path: str) -> str:
    """Return a path with all links followed; what is not there may be its end.

    A link that leads in a circle cannot be followed. Python then takes ``..`` behind it as text,
    and what that leads to may be another link: such a path is none.

    Raises:
        ValueError: If a link in it leads in a circle.
    """
    found = os.path.realpath(path)
    if os.path.realpath(found) != found or _is_circle(found):
        raise ValueError("a path without links that lead in a circle")
    return found


def _is_circle(path: str) -> bool:
    try:
        os.stat(path)  # noqa: PTH116 - many paths are asked for while a project opens
    except OSError as error:
        return error.errno == errno.ELOOP
    return False
