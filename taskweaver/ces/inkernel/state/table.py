"""The chunks of a save: entries of the manifest, and the bytes they name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taskweaver.ces.inkernel.state.chunks import chunk_name, spans
from taskweaver.ces.inkernel.state.islands import Island
from taskweaver.ces.inkernel.state.pickling.pickler import Pickled

Entry = dict[str, Any]


class ChunkTable:
    """Names of chunks, with the memory each is written from."""

    def __init__(self) -> None:
        self._data: dict[str, memoryview] = {}

    def data(self, name: str) -> memoryview:
        """Return the bytes of a chunk."""
        return self._data[name]

    def stream(self, stream: bytes) -> list[Any]:
        """Return the entry of a stream: its length and chunks."""
        return [len(stream), self._cut(memoryview(stream))]

    def buffer(self, buffer: memoryview) -> list[Any]:
        """Return the entry of a buffer: length, offset of the cuts, chunks, read only."""
        return [buffer.nbytes, 0, self._cut(buffer), buffer.readonly]

    def pickled(self, pickled: Pickled | None) -> Entry:
        """Return the entry of a pickling; without a stream if there is none."""
        if pickled is None:
            return {"stream": None, "buffers": []}
        buffers = [self.buffer(buffer) for buffer in pickled.buffers]
        return {"stream": self.stream(pickled.stream), "buffers": buffers}

    def island(self, island: Island) -> Entry:
        """Return the entry of an island."""
        entry = {"names": island.names, **self.pickled(island.pickled)}
        if len(island.own) > 1:
            entry["own"] = {name: self.pickled(own) for name, own in island.own.items()}
        return entry

    def _cut(self, data: memoryview) -> list[str]:
        names = []
        for begin, end in spans(data.nbytes):
            name = chunk_name(data[begin:end])
            self._data.setdefault(name, data[begin:end])
            names.append(name)
        return names


def chunks_of(entry: Entry) -> list[str]:
    """Return the names of all chunks of an entry, each once, in order."""
    parts = [entry, *entry.get("own", {}).values()]
    return list(dict.fromkeys(name for part in parts for name in _chunks_of_pickled(part)))


def _chunks_of_pickled(part: Entry) -> Iterable[str]:
    if part["stream"] is not None:
        yield from part["stream"][1]
    for _, _, names, _ in part["buffers"]:
        yield from names
