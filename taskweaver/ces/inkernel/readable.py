"""Waiting for files to become readable, whatever their numbers."""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Protocol


class HasFileNumber(Protocol):
    """A socket, a file, or anything else with a file number."""

    def fileno(self) -> int:
        """Return the file number."""


Source = HasFileNumber | int


def readable(sources: Sequence[Source], timeout_s: float | None = None) -> set[int]:
    """Return the file numbers that can be read, or whose other end is closed; None waits for ever.

    ``select`` refuses numbers from 1,024 on, which an owner of many kernels has.
    """
    poll = select.poll()
    for source in sources:
        poll.register(source, select.POLLIN)
    timeout_ms = None if timeout_s is None else 1000 * timeout_s
    return {fd for fd, _ in poll.poll(timeout_ms)}
