"""The turn at a host: of all runs that a user has there, one times a program at a time."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taskweaver.treesearch.errors import SearchError


@contextmanager
def host_turn() -> Iterator[None]:
    """Wait for the turn at this host, and keep it; it ends with the process at the latest.

    Raises:
        SearchError: If its file is not the user's own, or cannot be opened.
    """
    place = Path(tempfile.gettempdir()) / f"taskweaver-measuring-{os.getuid()}.lock"
    try:
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise SearchError(f"{place} cannot be opened: {error.strerror}.", "Remove it.") from error
    try:
        if os.fstat(handle).st_uid != os.getuid():
            raise SearchError(f"{place} belongs to another user.", "Remove it.")
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
