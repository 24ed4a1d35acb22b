"""A full disk at each write: a typed error, nothing lost, nothing half kept, and room again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from full_disks import largest_file
from memories import Open

from taskweaver.memory.branched import MemoryManager, StoreUnwritable

WRITES: dict[str, Callable[[MemoryManager, int], object]] = {
    "record": lambda m, n: m["a"].remember(f"record {n} " * 40, tags=["T"]),
    "event": lambda m, n: m["a"].append({"kind": "k", "content": f"event {n} " * 40}),
    "core": lambda m, n: m["a"].core.set(f"k{n % 9}", f"value {n} " * 40),
    "fork": lambda m, n: m["a"].fork(f"fork{n}"),
    "block": lambda m, n: m["a"].apply(
        {"core": {"b": f"{n}"}, "archival": [{"text": f"block {n} " * 40}]}
    ),
}


def state(memory: MemoryManager) -> tuple[object, ...]:
    handle = memory["a"]
    return list(memory), handle.core.entries(), handle.records(), handle.events()


@pytest.mark.parametrize("name", WRITES)
def test_a_write_without_room_is_refused_whole_and_works_with_room(
    open_memory: Open, name: str
) -> None:
    memory = open_memory(memory_log_enabled=True, core_max_chars=100_000, auto_consolidate=False)
    memory.create_branch(None, branch_id="a")
    write, refused, kept = WRITES[name], 0, 0
    log = memory.path.with_name(memory.path.name + "-wal")
    for step in range(60):
        # Room for a few bytes more than there are, up to some pages: each write fails once.
        room = max(log.stat().st_size, memory.path.stat().st_size) + 400 * (step % 30)
        before = state(memory)
        try:
            with largest_file(room):
                write(memory, step)
        except StoreUnwritable:
            refused += 1
            assert state(memory) == before
            write(memory, 1000 + step)
        kept += 1
        assert state(memory) != before
    assert refused > 5
    assert kept == 60
    assert memory.verify().is_sound
    shown = state(memory)
    memory.close()
    with open_memory() as again:
        assert state(again) == shown


def test_a_file_that_finds_no_room_at_all_is_not_opened(open_memory: Open) -> None:
    with largest_file(2000), pytest.raises(StoreUnwritable):
        open_memory("none.sqlite", is_new=True)
    with open_memory("none.sqlite", is_new=True) as memory:
        memory.create_branch(None, branch_id="a")
        assert memory.verify().is_sound


def test_a_block_and_a_merge_without_room_leave_nothing_behind(open_memory: Open) -> None:
    memory = open_memory(memory_log_enabled=True)
    memory.create_branch(None, branch_id="a")
    memory["a"].fork("b")
    for n in range(50):
        memory["b"].remember(f"record {n} " * 100)
    before = state(memory)
    memory._parts.database.write_through()  # the log begins anew, and what is in it has no room
    with largest_file(9000), pytest.raises(StoreUnwritable):
        memory.merge("b", "a", "theirs")
    assert state(memory) == before
    assert len(memory.merge("b", "a", "theirs").taken) == 50
    assert memory.verify().is_sound
