"""Memory of restored buffers, at the address modulo 1 MiB that they were saved from."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

from taskweaver.ces.inkernel.state.chunks import address_of
from taskweaver.ces.inkernel.wire import CHUNK_BYTES


def allocate(places: Sequence[tuple[int, int]]) -> list[memoryview]:
    """Return writable memory for each buffer: its length, and its address modulo 1 MiB.

    Large buffers get a mapping each, so that each can be freed alone; small ones share one.
    """
    small = [number for number, (length, _) in enumerate(places) if length < CHUNK_BYTES]
    views = dict(zip(small, _shared([places[number] for number in small]), strict=True))
    return [
        views[number] if number in views else _shared([place])[0]
        for number, place in enumerate(places)
    ]


def _shared(places: Sequence[tuple[int, int]]) -> list[memoryview]:
    """Return memory of one mapping for all buffers; unused pages of it cost nothing."""
    if not places:
        return []
    begins = [0] * len(places)
    end = 0
    for number in sorted(range(len(places)), key=lambda number: places[number][1]):
        length, offset = places[number]
        begins[number] = end + (offset - end) % CHUNK_BYTES
        end = begins[number] + length
    # Private: a fork of the kernel must not write into the memory of its parent.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    mapping = memoryview(mmap.mmap(-1, end + CHUNK_BYTES, flags=flags))
    shift = -address_of(mapping) % CHUNK_BYTES
    return [
        mapping[shift + begin : shift + begin + length]
        for begin, (length, _) in zip(begins, places, strict=True)
    ]
