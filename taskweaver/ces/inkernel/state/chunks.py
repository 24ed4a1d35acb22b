"""Chunks, blocks of at most 1 MiB named by their hash, and the pickles read back from chunks."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import xxhash

from taskweaver.ces.inkernel.state.pickling.rebuild import Namespace, reading_into
from taskweaver.ces.inkernel.wire import CHUNK_BYTES, Wire


class HostChunks:
    """The host as destination and origin of chunks."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def missing(self, names: Sequence[str]) -> set[str]:
        """Return those of `names` that are not stored yet."""
        self._wire.send({"missing": list(names)})
        return set(self._wire.receive()["missing"])

    def write(self, name: str, data: memoryview) -> None:
        """Store a chunk under its hash."""
        self._wire.send({"chunk": name, "size": len(data)}, data)

    def at(self, variable: str) -> None:
        """Note progress: the variable that is written now."""
        self._wire.send({"at": variable[:500]})

    def read(self, name: str, size: int, into: memoryview) -> None:
        """Fill a buffer with a chunk.

        Raises:
            OSError: If the host is gone.
            ValueError: If the host does not have it in this size.
        """
        self._wire.send({"read": name})
        answer = self._wire.receive()
        found = answer.get("size")
        if found == size:
            self._wire.receive_into(into)
            return
        if isinstance(found, int):
            self._wire.receive_bytes(found)
        raise ValueError(answer.get("error") or "it has another size")

    def damaged(self, name: str) -> None:
        """Report a chunk that is not as it was stored, so that it is stored again."""
        self._wire.send({"damaged": name})


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


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause the collection of garbage: while millions of objects appear, it finds none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class DamagedChunk(Exception):
    """A chunk is missing, cut or changed."""


def unpickle(
    stream: bytes | bytearray,
    buffers: Sequence[memoryview],
    namespace: Namespace,
    problems: list[str],
) -> Namespace:
    """Read variables from a stream.

    `namespace` becomes the globals of functions that cells defined; `problems` receives remarks
    about parts that could not be read.

    Raises:
        Exception: Whatever the objects raise.
    """
    with reading_into(namespace, problems):
        found = pickle.loads(stream, buffers=buffers)  # noqa: S301 - in the kernel, sandboxed
    if not isinstance(found, dict):
        raise pickle.UnpicklingError("the stream holds no variables")
    return found


def read_entry(
    entry: Mapping[str, Any],
    source: HostChunks,
    namespace: Namespace,
    problems: list[str],
) -> Namespace:
    """Read the variables of an entry of a manifest.

    Raises:
        DamagedChunk: If a chunk is not as it was stored.
        Exception: Whatever the objects raise.
    """
    length, names = entry["stream"]
    stream = bytearray(length)
    _fill(memoryview(stream), 0, names, source)
    buffers = []
    for length, offset, names, is_read_only in entry["buffers"]:
        buffer = memoryview(bytearray(length))
        _fill(buffer, offset, names, source)
        buffers.append(buffer.toreadonly() if is_read_only else buffer)
    return unpickle(stream, buffers, namespace, problems)


def _fill(into: memoryview, offset: int, names: Sequence[str], source: HostChunks) -> None:
    places = list(spans(into.nbytes, offset))
    if len(places) != len(names):
        raise DamagedChunk("the list of chunks is damaged")
    for (begin, end), name in zip(places, names, strict=True):
        part = into[begin:end]
        try:
            source.read(name, end - begin, part)
            if chunk_name(part) != name:
                raise ValueError("its bytes have changed")
        except (OSError, ValueError) as error:
            source.damaged(name)
            raise DamagedChunk(f"chunk {name} is damaged: {error}") from error
