"""Addresses of files that are good once, for a minute: a browser opens them without a header."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from taskweaver.server.operations import missing

_GOOD_S = 60.0
_MOST_LINKS = 1000


@dataclass(frozen=True, slots=True)
class FileTicket:
    """A file of a working directory that may be read once.

    Attributes:
        folder: The working directory.
        path: Path in it.
        is_frame: Whether it is shown in a frame, and not downloaded.
        until: End of its time, in seconds of the monotonic clock.
    """

    folder: Path
    path: str
    is_frame: bool
    until: float


class OnceLinks:
    """Tickets by their secret names; the oldest are forgotten."""

    def __init__(self) -> None:
        self._tickets: OrderedDict[str, FileTicket] = OrderedDict()

    def add(self, folder: Path, path: str, *, is_frame: bool) -> str:
        """Return the secret name of a new ticket."""
        name = secrets.token_urlsafe(32)
        self._tickets[name] = FileTicket(folder, path, is_frame, time.monotonic() + _GOOD_S)
        while len(self._tickets) > _MOST_LINKS:
            self._tickets.popitem(last=False)
        return name

    def take(self, name: str) -> FileTicket:
        """Return a ticket, which is used up then.

        Raises:
            RequestRefused: If there is none of this name, or its time is over.
        """
        ticket = self._tickets.pop(name, None)
        if ticket is None or ticket.until < time.monotonic():
            raise missing("Link", "of this address")
        return ticket
