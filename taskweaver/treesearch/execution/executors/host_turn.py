"""The turn at a host: of all runs that a user has there, one times a program at a time."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taskweaver.treesearch.errors import SearchError

_LOOK_S = 0.2


@contextmanager
def host_turn(cut_off: threading.Event | None = None) -> Iterator[None]:
    """Wait for the turn at this host, and keep it; it ends with the process at the latest.

    Where `cut_off` is set, the wait ends without the turn.

    Raises:
        SearchError: If its file is not the user's own, or cannot be opened.
    """
    handle = _opened()
    try:
        if cut_off is None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        else:  # the system has no wait for a lock that another thread can end
            while not (_has_taken(handle) or cut_off.wait(_LOOK_S)):
                pass
        yield
    finally:
        os.close(handle)


def check_host_turn() -> None:
    """Check that the turn at this host can be had; raises as `host_turn`."""
    os.close(_opened())


def _opened() -> int:
    place = Path(tempfile.gettempdir()) / f"taskweaver-measuring-{os.getuid()}.lock"
    try:
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SearchError(f"{place} cannot be opened: {error.strerror}.", "Remove it.") from error
    if os.fstat(handle).st_uid != os.getuid():
        os.close(handle)
        raise SearchError(f"{place} belongs to another user.", "Remove it.")
    return handle


def _has_taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
