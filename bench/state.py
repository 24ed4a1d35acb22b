"""A namespace of frames saved and loaded, beside plain pickle.

Both keep their bytes in memory. Run with ``python -m bench.state``.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from bench.common import sized
from taskweaver.ces.inkernel.state.chunks import HostChunks
from taskweaver.ces.inkernel.state.load import load_state
from taskweaver.ces.inkernel.state.pickling.reducers import note_classes
from taskweaver.ces.inkernel.state.save import Subject, save_state

FRAMES, COLUMNS = 10, 10
ROWS, SMALL_OBJECTS = sized((125_000, 300_000), (100, 100))


class Memory(HostChunks):
    """Chunks in a dictionary, and the bytes written to it."""

    def __init__(self) -> None:
        self.chunks: dict[str, bytes] = {}
        self.written = 0

    def missing(self, names: Sequence[str]) -> set[str]:
        """Return the names that are not stored yet."""
        return set(names) - self.chunks.keys()

    def write(self, name: str, data: memoryview) -> None:
        """Store a chunk."""
        self.chunks[name] = bytes(data)
        self.written += data.nbytes

    def at(self, variable: str) -> None:
        """Drop the progress."""

    def read(self, name: str, size: int, into: memoryview) -> None:
        """Copy a chunk."""
        into[:size] = self.chunks[name]

    def damaged(self, name: str) -> None:
        """Drop the report: nothing is stored again here."""


def run() -> dict[str, float]:
    """Return seconds, and megabytes written, of saves and a load of 100 MB of frames."""
    numbers = np.random.default_rng(0)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for n in range(FRAMES):
        values = numbers.random((ROWS, COLUMNS))
        namespace[f"df{n}"] = pd.DataFrame(values, columns=[f"c{c}" for c in range(COLUMNS)])
    memory = Memory()
    note_classes(namespace)
    figures: dict[str, float] = {}

    def save(label: str) -> dict[str, Any]:
        before, since = memory.written, perf_counter()
        manifest = save_state(Subject(namespace, frozenset(), {}, {}, 0), memory)
        figures[f"save_{label}_s"] = perf_counter() - since
        figures[f"save_{label}_mb"] = (memory.written - before) / 1e6
        return manifest

    save("first")
    save("unchanged")
    namespace["df3"]["c4"] = 1.5
    manifest = save("column")
    figures["load_s"] = _timed(lambda: load_state({**manifest, "process": {}}, {}, memory))
    frames = {name: value for name, value in namespace.items() if name.startswith("df")}
    stream: list[bytes] = []
    figures["pickle_dumps_s"] = _timed(lambda: stream.append(pickle.dumps(frames, 5)))
    figures["pickle_loads_s"] = _timed(lambda: pickle.loads(stream[0]))  # noqa: S301 - its own
    figures["save_ratio"] = figures["save_first_s"] / figures["pickle_dumps_s"]
    figures["load_ratio"] = figures["load_s"] / figures["pickle_loads_s"]
    objects = [{"id": n, "name": f"n{n}", "tags": [n]} for n in range(SMALL_OBJECTS)]
    namespace = {"__name__": "__main__", "objects": objects}
    save("objects")
    figures["pickle_objects_s"] = _timed(lambda: pickle.dumps(objects, 5))
    return figures


def _timed(job: Callable[[], object]) -> float:
    since = perf_counter()
    job()
    return perf_counter() - since


def main() -> None:
    """Print the figures."""
    size = FRAMES * ROWS * COLUMNS * 8 / 1e6
    print(f"{FRAMES} frames, {size:.0f} MB; {os.cpu_count()} processors")
    for name, value in run().items():
        print(f"  {name:<22}{value:>10.3f}")


if __name__ == "__main__":
    main()
