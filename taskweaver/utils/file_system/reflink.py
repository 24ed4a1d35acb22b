"""Lets files share storage where the file system can: a copy that costs nothing."""

from __future__ import annotations

import os

_FICLONE = 0x40049409
"""Linux's request to let a file share the storage of another (``man ioctl_ficlone``)."""


def share_storage(old: int, new: int) -> bool:
    """Let an empty file share the storage of another, both open; return whether that is done."""
    import fcntl  # not on Windows, where this module can be imported

    try:
        fcntl.ioctl(new, _FICLONE, old)
    except OSError:  # another file system, or one that cannot
        return False
    return os.fstat(new).st_size == os.fstat(old).st_size
