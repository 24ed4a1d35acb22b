"""Bounds on a server's output: the size of a message, and the sum between two requests."""

from __future__ import annotations

MOST_MESSAGE_BYTES = 32 << 20
"""What can be handed to a kernel, twice (as text and as data), with room for escapes."""
_MOST_BYTES = 128 << 20
_COST_BYTES = 8_000
"""What a message counts beside its size: reading many small ones costs time."""


class FlowExceeded(Exception):
    """A server sends more than it may."""

    @classmethod
    def message(cls) -> FlowExceeded:
        """Return the error for a message that is too long."""
        return cls(f"it sent a message of more than {MOST_MESSAGE_BYTES >> 20} MiB")


class Flow:
    """Counts the messages that come after a request."""

    def __init__(self) -> None:
        self._bytes = 0

    def restart(self) -> None:
        """Begin anew: something was asked."""
        self._bytes = 0

    def count(self, size_bytes: int, messages: int = 1) -> None:
        """Count messages, or a part of one.

        Raises:
            FlowExceeded: If there were too many.
        """
        self._bytes += size_bytes + messages * _COST_BYTES
        if self._bytes > _MOST_BYTES:
            raise FlowExceeded("it sent messages without end")
