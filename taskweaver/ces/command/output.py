"""The output of a command: bounded in memory and in its log, whatever is printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

_CONTINUATION = bytes(range(0x80, 0xC0))


class CommandOutput:
    """Takes the bytes a command prints. Close it.

    The first bytes go to the log and to the callback as they come; of the rest the last are kept,
    and written to the log at the end, after a note of how many are missing.

    Attributes:
        dropped_bytes: Bytes that are in the log no more; final once it is closed.
    """

    def __init__(
        self,
        log: IO[bytes] | None,
        on_output: Callable[[bytes], None] | None,
        *,
        kept_bytes: int,
        tail_bytes: int,
    ) -> None:
        """Begin.

        Args:
            log: File it is written to, owned by the caller; None for none.
            on_output: Called with the bytes for the log, as they come; None for none.
            kept_bytes: Most bytes that go there as they come; 0 sets no limit.
            tail_bytes: Bytes at the beginning and at the end that are kept in any case.
        """
        self._log = log
        self._on_output = on_output
        self._left = kept_bytes or None
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._total = self._written = 0
        self.dropped_bytes = 0

    def take(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            OSError: If the log cannot be written.
        """
        self._total += len(data)
        self._head += data[: self._tail_bytes - len(self._head)]
        self._tail += data
        del self._tail[: -self._tail_bytes]
        kept = data if self._left is None else data[: self._left]
        if self._left is not None:
            self._left -= len(kept)
        self._written += len(kept)
        self._emit(kept)

    def close(self) -> None:
        """Write the note and the end to the log, where bytes are missing.

        Raises:
            OSError: If the log cannot be written.
        """
        over = self._total - self._written
        if over:
            end = bytes(self._tail[-over:])
            self.dropped_bytes = over - len(end)
            note = f"\n... {self.dropped_bytes:,} bytes left out ...\n" if over > len(end) else ""
            self._written = self._total
            self._emit(note.encode() + end)

    def _emit(self, data: bytes) -> None:
        if not data:
            return
        if self._log is not None:
            self._log.write(data)
        if self._on_output is not None:
            self._on_output(data)

    @property
    def head(self) -> str:
        """The first bytes, as `tail`."""
        return bytes(self._head).decode("utf-8", "backslashreplace")

    @property
    def tail(self) -> str:
        """The last bytes as text; bytes that are no UTF-8 are written as hexadecimal escapes."""
        data = bytes(self._tail)
        if self._total > len(data):  # the first character may be cut
            data = data[:3].lstrip(_CONTINUATION) + data[3:]
        return data.decode("utf-8", "backslashreplace")
