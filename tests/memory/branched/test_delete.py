"""A deleted record or event is gone from its branch on, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from memories import Open

from taskweaver.memory.branched import (
    BranchSealed,
    InvalidUpdate,
    MemoryManager,
    RecordNotVisible,
)


def texts(memory: MemoryManager, branch: str, at: int | None = None) -> list[str]:
    return [item.text for item in memory[branch].records(at=at)]


def events(memory: MemoryManager, branch: str, at: int | None = None) -> list[str]:
    return [event.text for event in memory[branch].events(at=at)]


def delete(memory: MemoryManager, branch: str, **ids: object) -> dict[str, Any]:
    """Delete by a block: `archival` and `recall` name what."""
    block = {f"{tier}_delete": given for tier, given in ids.items()}
    return memory.apply_llm_memory_updates(branch, block)


def test_each_face_deletes(memory: MemoryManager) -> None:
    ids = [memory.write_archival("a", text) for text in ("one", "two", "three")]
    events = [memory.write_event("a", "k", text) for text in ("one", "two", "three")]
    memory.mem_archival_delete(ids[0], branch_id="a")
    memory.mem_recall_delete(events[0], branch_id="a")
    handle = memory["a"]
    handle.forget(ids[1])
    handle.forget_event(f"#{events[1]}")
    assert [item.text for item in handle.records()] == ["three"]
    assert [event.text for event in handle.events()] == ["three"]
    for call in (handle.forget, handle.forget_event):
        with pytest.raises(RecordNotVisible):
            call(999)


def test_a_record_is_hidden_from_the_branch_on(memory: MemoryManager) -> None:
    record = memory.write_archival("root", "lives at the harbour")
    memory.fork("root", "c")
    before = memory.seq
    assert delete(memory, "c", archival=[record]) == {"archival_delete": [record]}
    memory.fork("c", "below")
    for branch in ("c", "below"):
        assert texts(memory, branch) == []
        assert memory.mem_archival_search("harbour", branch_id=branch) == []
        with pytest.raises(RecordNotVisible):
            memory.mem_archival_get(record, branch_id=branch)
    assert texts(memory, "root") == ["lives at the harbour"]
    assert texts(memory, "c", at=before) == ["lives at the harbour"]
    assert memory.verify().is_sound


@pytest.mark.parametrize("use_fts", ["auto", "off"])
def test_a_deleted_record_is_found_by_no_search(open_memory: Open, use_fts: str) -> None:
    memory = open_memory(use_fts=use_fts)
    memory.bind(memory.create_branch(None, branch_id="root"))
    first = memory.write_archival("root", "the harbour is old")
    memory.mem_archival_update(first, text="the harbour is new")
    memory.write_archival("root", "the hill is high")
    delete(memory, "root", archival=first)
    assert [row["text"] for row in memory.mem_archival_search("harbour hill")] == [
        "the hill is high"
    ]


def test_a_deleted_text_can_be_written_again(memory: MemoryManager) -> None:
    first = memory.write_archival("a", "eight threads")
    delete(memory, "a", archival=[first])
    again = memory.write_archival("a", "eight threads")
    assert again != first
    assert texts(memory, "a") == ["eight threads"]
    with pytest.raises(RecordNotVisible):
        memory.mem_archival_update(first, text="x", branch_id="a")


def test_a_deletion_on_a_live_branch_reaches_its_descendants(open_memory: Open) -> None:
    memory = open_memory()
    memory.create_branch(None, branch_id="run", live=True)
    record = memory.write_archival("run", "from the beginning")
    memory.fork("run", "below")
    memory.fork("run", "changed")
    memory.mem_archival_update(record, text="of its own", branch_id="changed")
    delete(memory, "run", archival=[record])
    assert texts(memory, "below") == []
    assert texts(memory, "changed") == ["of its own"]


def test_an_event_is_hidden_without_being_kept(memory: MemoryManager) -> None:
    memory.write_event("root", "k", "left the harbour")
    number = memory.write_event("root", "k", "left the harbour")
    memory.fork("root", "c")
    before = memory.seq
    assert delete(memory, "c", recall=[f"#{number}"]) == {"recall_delete": [number]}
    memory.fork("c", "below")
    assert events(memory, "c") == events(memory, "below") == []
    assert memory.mem_recall_search("harbour", branch_id="c") == []
    assert texts(memory, "c") == []
    assert events(memory, "c", at=before) == events(memory, "root") == ["left the harbour"]
    memory.write_event("c", "k", "left the harbour")
    assert [event.count for event in memory["c"].events()] == [1]


@pytest.mark.parametrize("name", ["mem_archival_delete", "mem_recall_delete"])
@pytest.mark.parametrize("ids", [[999], ["#999"], 999, [2**63], [10**30]])
def test_what_is_not_in_view_cannot_be_deleted(
    memory: MemoryManager, name: str, ids: object
) -> None:
    before = memory.seq
    with pytest.raises(RecordNotVisible):
        memory.apply_llm_memory_updates("a", {"core": {"k": "1"}, name: ids})
    assert memory.seq == before


@pytest.mark.parametrize("ids", ["seven", [None], [{}], [-1], {"number": 1}, [1.5], True])
def test_ids_that_are_no_numbers_are_named(memory: MemoryManager, ids: object) -> None:
    with pytest.raises(InvalidUpdate, match=r"archival_delete\[0\]"):
        memory.apply_llm_memory_updates("a", {"archival_delete": ids})


def test_a_sibling_and_a_sealed_branch_are_out_of_reach(memory: MemoryManager) -> None:
    record = memory.write_archival("a", "of a")
    event = memory.write_event("a", "k", "of a")
    for ids in ({"archival": [record]}, {"recall": [event]}):
        with pytest.raises(RecordNotVisible):
            delete(memory, "b", **ids)
    memory.seal("a")
    with pytest.raises(BranchSealed):
        delete(memory, "a", archival=[record])


def test_the_same_thing_is_not_deleted_twice(memory: MemoryManager) -> None:
    record = memory.write_archival("a", "once")
    event = memory.write_event("a", "k", "once")
    assert delete(memory, "a", archival=[record, record], recall=[event, event])
    for ids in ({"archival": [record]}, {"recall": [event]}):
        with pytest.raises(RecordNotVisible):
            delete(memory, "a", **ids)


def test_a_merge_does_not_bring_back_a_deleted_record(memory: MemoryManager) -> None:
    inherited = memory.write_archival("root", "inherited")
    memory.fork("root", "c")
    memory.fork("root", "d")
    memory.write_archival("c", "of c")
    memory.merge("c", "d", "theirs")
    copy = next(item.id for item in memory["d"].records() if item.text == "of c")
    delete(memory, "d", archival=[inherited, copy])
    memory.merge("c", "d", "theirs")
    assert texts(memory, "d") == []
    delete(memory, "c", archival=[item.id for item in memory["c"].records() if item.text == "of c"])
    memory.write_archival("c", "of c")
    memory.merge("c", "d", "theirs")
    assert texts(memory, "d") == ["of c"]


def test_history_and_exports_carry_a_deletion(memory: MemoryManager, open_memory: Open) -> None:
    record = memory.write_archival("root", "said once")
    memory.fork("root", "c")
    delete(memory, "c", archival=[record])
    assert memory.history("c")[0].text == f"record {record} (deleted)"
    file = memory.path.with_name("out.jsonl")
    memory.export(file)
    other = open_memory("other.sqlite")
    other.import_(file)
    assert texts(other, "c") == []
    assert texts(other, "root") == ["said once"]
    assert other.verify().is_sound
