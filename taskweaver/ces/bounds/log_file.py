"""A log that others append to, kept within its size."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OPEN = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
_OPEN |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_KEPT_BYTES = 1 << 20


def trim_log(path: Path, limit_bytes: int) -> int:
    """Remove the beginning of a log that is too large; a limit of 0 sets none.

    Returns:
        The bytes it had; 0 when it is within its size, or no file that can be cut.
    """
    if not limit_bytes:
        return 0
    try:
        if path.lstat().st_size <= limit_bytes:
            return 0
        file = os.open(path, _OPEN)
    except OSError:
        return 0
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size <= limit_bytes:
            return 0
        kept = min(limit_bytes // 2, _KEPT_BYTES)
        tail = os.pread(file, kept, facts.st_size - kept)
        os.ftruncate(file, 0)
        left_out = facts.st_size - len(tail)
        os.write(file, f"[{left_out:,} bytes were removed here]\n".encode() + tail)
        return facts.st_size
    finally:
        os.close(file)
