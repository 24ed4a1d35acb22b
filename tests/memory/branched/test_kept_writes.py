"""A write that was acknowledged is in view afterwards, whatever was written before."""

from __future__ import annotations

from memories import Open

from taskweaver.memory.branched import MemoryManager

EIGHT, FOUR = "threads=8 is best", "threads=4 is best"


def texts(memory: MemoryManager, branch: str) -> list[str]:
    return sorted(item.text for item in memory[branch].records())


def changed_record(memory: MemoryManager, branch: str) -> str:
    """Write a text and change it, so that its first version is in view no more."""
    record = memory.mem_archival_write(EIGHT, tags=["T"], branch_id=branch)
    memory.mem_archival_update(record, text=FOUR, branch_id=branch)
    return record


def test_a_text_is_written_again_after_its_record_was_changed(memory: MemoryManager) -> None:
    first = changed_record(memory, "a")
    again = memory.mem_archival_write(EIGHT, tags=["T"], branch_id="a")
    assert again != first
    assert texts(memory, "a") == [FOUR, EIGHT]
    assert memory.mem_archival_get(again, branch_id="a")["text"] == EIGHT
    found = memory.mem_archival_search(EIGHT, branch_id="a", k=1)
    assert [item["id"] for item in found] == [again]


def test_a_block_writes_a_text_again_after_its_record_was_changed(memory: MemoryManager) -> None:
    block = {"archival": [{"text": EIGHT, "tags": ["T"]}]}
    (first,) = memory.apply_llm_memory_updates("a", block)["archival"]
    memory.apply_llm_memory_updates("a", {"archival_update": [{"id": first, "text": FOUR}]})
    (again,) = memory.apply_llm_memory_updates("a", block)["archival"]
    assert again != first
    assert texts(memory, "a") == [FOUR, EIGHT]


def test_a_record_is_promoted_again_after_its_copy_was_changed(memory: MemoryManager) -> None:
    changed_record(memory, "b")
    record = memory.mem_archival_write(EIGHT, tags=["T"], branch_id="a")
    copy = memory.promote(int(record), "b", branch_id="a")
    assert texts(memory, "b") == [FOUR, EIGHT]
    assert memory.mem_archival_get(copy, branch_id="b")["meta"]["from_branch"] == "a"


def test_a_merge_brings_a_text_that_the_target_has_changed(memory: MemoryManager) -> None:
    changed_record(memory, "b")
    memory.mem_archival_write(EIGHT, tags=["T"], branch_id="a")
    report = memory.merge("a", "b", "theirs")
    (taken,) = report.taken
    assert texts(memory, "b") == [FOUR, EIGHT]
    assert memory.mem_archival_get(taken.split()[1], branch_id="b")["text"] == EIGHT


def test_a_merge_leaves_alone_an_inherited_record_that_only_the_target_changed(
    memory: MemoryManager,
) -> None:
    record = memory.mem_archival_write(EIGHT, branch_id="root")
    memory.fork("root", "left")
    memory.fork("root", "right")
    memory.mem_archival_update(record, text=FOUR, branch_id="right")
    assert memory.merge("left", "right", "theirs").taken == []
    assert texts(memory, "right") == [FOUR]
    assert memory.merge("right", "left", "theirs").taken != []
    assert texts(memory, "left") == [FOUR, EIGHT]


def test_the_text_of_a_version_in_view_is_kept_once(memory: MemoryManager) -> None:
    record = changed_record(memory, "a")
    assert memory.mem_archival_write(FOUR, tags=["T"], branch_id="a") == record
    assert texts(memory, "a") == [FOUR]


def test_meta_of_a_text_that_is_kept_already_is_kept_too(memory: MemoryManager) -> None:
    record = memory.mem_archival_write(EIGHT, meta={"run": 1}, branch_id="a")
    before = memory.seq
    assert memory.mem_archival_write(EIGHT, meta={"run": 1}, branch_id="a") == record
    assert memory.seq == before
    assert memory.mem_archival_write(EIGHT, meta={"host": "x"}, branch_id="a") == record
    kept = memory.mem_archival_get(record, branch_id="a")
    assert kept["meta"] == {"run": 1, "host": "x"}
    assert texts(memory, "a") == [EIGHT]


def test_an_evicted_key_is_in_archival_memory_each_time(open_memory: Open) -> None:
    memory = open_memory(core_max_chars=100)
    memory.bind(memory.create_branch(None, branch_id="root"))
    for _ in range(2):
        memory.mem_core_set("old", "x" * 40, importance=1)
        memory.mem_core_set("new", "y" * 70)
        (evicted,) = memory["root"].records(tags=["CORE_EVICT"])
        assert "x" * 40 in evicted.text
        memory.mem_archival_update(evicted.id, text="changed", tags=["T"])
