"""Chunks: named by hash, written once, and damaged alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ces.state import trips
from ces.state.kept import Kept, load, namespace_of, save
from sizes import some

from taskweaver.ces.inkernel.state.chunks import chunk_name, spans
from taskweaver.ces.inkernel.wire import CHUNK_BYTES

pytestmark = pytest.mark.usefixtures("warm_trips")
MIB = CHUNK_BYTES


@pytest.mark.parametrize("offset", [0, 1, 4096, MIB - 1])
@pytest.mark.parametrize("length", [0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB])
def test_a_buffer_is_cut_at_multiples_of_an_offset(length: int, offset: int) -> None:
    places = list(spans(length, offset))
    assert sum(end - begin for begin, end in places) == length
    assert all((offset + begin) % MIB == 0 for begin, _ in places[1:])
    assert all(0 < end - begin <= MIB for begin, end in places)


ROWS = some((200_000, 400_000), 1)[-1]
FRAME = f"""
df = pd.DataFrame(np.arange({ROWS} * 10.).reshape({ROWS}, 10), columns=list('abcdefghij'))
names = pd.DataFrame({{'s': [f'name {{n}}' for n in range({ROWS} // 2)], 'n': range({ROWS} // 2)}})
other = np.arange(300_000)
"""


def test_only_bytes_that_changed_are_written_also_after_a_load(tmp_path: Path) -> None:
    saved = trips.save(tmp_path, FRAME, change="df['c'] = 1.5; one = 1")
    first, again = (sum(save["written"].values()) for save in (saved.first, saved.again))
    assert first > 80 * ROWS
    assert again < 80 * ROWS, "the other variables and the first columns are stored"
    untouched = {island["names"][0] for island in saved.manifest["islands"]} - {"df"}
    for island in saved.again["manifest"]["islands"]:
        if island["names"][0] in untouched:
            assert island in saved.manifest["islands"]
    loaded = trips.checked(saved, "assert df.e.sum() > 0 and names.s[5] == 'name 5' and one == 1")
    assert sum(loaded.after["written"].values()) < 20_000, "after a load next to nothing is written"


def test_equal_bytes_are_stored_once() -> None:
    block = np.arange(MIB // 2)
    copies = {f"c{n}": block.copy() for n in range(3)}
    kept = Kept()
    save({"__name__": "__main__", **copies}, kept)
    assert len(kept.written) == len(set(kept.written))
    assert all(chunk_name(memoryview(data)) == name for name, data in kept.chunks.items())
    assert all(len(data) <= MIB for data in kept.chunks.values())


def _manifest() -> tuple[Kept, dict[str, Any]]:
    kept = Kept()
    cells = "shared = list(range(10)); a = [shared]; b = {'s': shared}; text = 'fine'"
    big = np.arange(1_000_000)
    return kept, save(namespace_of(cells, big=big), kept)


def _island(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(i for i in manifest["islands"] if name in i["names"])
    return found


@pytest.mark.parametrize("damage", [lambda data: bytes(len(data)), lambda data: data[:-1], None])
def test_a_damaged_chunk_loses_its_island_alone(damage: Callable[[bytes], bytes] | None) -> None:
    kept, manifest = _manifest()
    name = _island(manifest, "big")["buffers"][0][2][1]
    data = kept.chunks.pop(name)
    if damage is not None:
        kept.chunks[name] = damage(data)
    found, problems = load(manifest, kept)
    assert [problem.name for problem in problems] == ["big"]
    assert f"chunk {name} is damaged" in problems[0].reason
    assert "damaged" in repr(found["big"])
    assert found["a"][0] is found["b"]["s"] is found["shared"]
    assert found["text"] == "fine"


def test_an_island_that_cannot_be_read_falls_back_to_its_variables() -> None:
    kept, manifest = _manifest()
    joint = _island(manifest, "shared")
    assert set(joint["names"]) == {"shared", "a", "b"}
    del kept.chunks[joint["stream"][1][0]]
    found, problems = load(manifest, kept)
    assert found["a"] == [list(range(10))]
    assert found["b"] == {"s": list(range(10))}
    assert found["a"][0] is not found["shared"]
    assert len(problems) == 1
    assert "shared, a and b no longer share memory" in problems[0].reason


@pytest.mark.parametrize("damage", ["length", "chunks"])
def test_a_manifest_that_contradicts_itself_loses_what_it_describes(damage: str) -> None:
    kept, manifest = _manifest()
    buffer = _island(manifest, "big")["buffers"][0]
    if damage == "length":
        buffer[0] += 1
    else:
        buffer[2].pop()
    _, problems = load(manifest, kept)
    assert [problem.name for problem in problems] == ["big"]
