"""Chunks: blocks of at most 1 MiB, named by their hash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import xxhash

from taskweaver.ces.inkernel.wire import CHUNK_BYTES


class ChunkSink(Protocol):
    """Destination of chunks while a state is saved."""

    def missing(self, names: Sequence[str]) -> set[str]:
        """Return those of `names` that are not stored yet."""

    def write(self, name: str, data: memoryview) -> None:
        """Store one chunk under its hash."""

    def at(self, variable: str) -> None:
        """Note progress: the variable that is written now."""


class ChunkSource(Protocol):
    """Origin of chunks while a state is loaded."""

    def read(self, name: str, size: int, into: memoryview) -> None:
        """Copy one chunk of `size` bytes.

        Raises:
            OSError: If the chunk cannot be read.
            ValueError: If there is no chunk of this name and size.
        """

    def damaged(self, name: str) -> None:
        """Report a chunk that is not as it was stored, so that it is stored again."""


def chunk_name(data: memoryview) -> str:
    """Return the name of a chunk: its xxh3-128 hash in hexadecimal."""
    return xxhash.xxh3_128_hexdigest(data)


def spans(length: int, offset: int = 0) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each chunk of a buffer.

    `offset` moves the cuts. Earlier releases cut buffers at multiples of their address.
    """
    begin = 0
    while begin < length:
        end = min(length, begin + CHUNK_BYTES - (offset + begin) % CHUNK_BYTES)
        yield begin, end
        begin = end
