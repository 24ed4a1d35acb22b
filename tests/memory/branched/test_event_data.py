"""What an event is written with stays with it: its own time, and the data of each repetition."""

from __future__ import annotations

import pytest
from memories import Clock, Open

from taskweaver.memory.branched import MemoryManager, RecordNotVisible


def test_the_time_an_event_is_written_with_is_shown(memory: MemoryManager, clock: Clock) -> None:
    memory.mem_recall_append({"kind": "k", "content": "told late", "ts": 123.5}, branch_id="a")
    memory.mem_recall_append({"kind": "k", "content": "told at once"}, branch_id="a")
    newest, first = memory.mem_recall_search("told", branch_id="a")
    assert (first["ts"], first["created_at"]) == (123.5, clock.now)
    assert (newest["ts"], newest["created_at"]) == (clock.now, clock.now)
    read = memory.apply_llm_memory_updates("a", {"recall_search": "late"})["recall_search"]
    assert [event["ts"] for event in read] == [123.5]


def test_the_data_of_every_repetition_can_be_read(memory: MemoryManager) -> None:
    seqs = [memory.write_event("a", "run_failed", "segfault", attempt=n) for n in range(3)]
    then = memory.seq
    memory.write_event("a", "run_failed", "segfault", attempt=3)
    for number in (*seqs, f"#{seqs[0]}"):
        found = memory["a"].occurrences(number)
        assert [event.data["attempt"] for event in found] == [3, 2, 1, 0]
        assert {(event.kind, event.text, event.count) for event in found} == {
            ("run_failed", "segfault", 1)
        }
    assert [event.seq for event in memory["a"].occurrences(seqs[0], at=then)] == seqs[::-1]
    (shown,) = memory["a"].events()
    assert (shown.count, shown.data["attempt"]) == (4, 3)


def test_occurrences_are_those_that_the_branch_sees(memory: MemoryManager) -> None:
    first = memory.write_event("a", "k", "again", n=1)
    memory.fork("a", "child")
    memory.write_event("a", "k", "again", n=2)
    assert [event.data["n"] for event in memory["child"].occurrences(first)] == [1]
    for branch, number in (("b", first), ("a", 99_999), ("a", 10**30)):
        with pytest.raises(RecordNotVisible):
            memory[branch].occurrences(number)
    memory.apply_llm_memory_updates("child", {"recall_evict": {"ids": [first]}})
    with pytest.raises(RecordNotVisible):
        memory["child"].occurrences(first)
    assert len(memory["a"].occurrences(first)) == 2


def test_an_evicted_event_takes_the_data_of_all_its_repetitions_along(open_memory: Open) -> None:
    memory = open_memory()
    memory.create_branch(None, branch_id="root")
    seqs = [memory.write_event("root", "k", "again", n=n) for n in range(3)]
    memory.apply_llm_memory_updates("root", {"recall_evict": {"oldest": 1}})
    (record,) = memory["root"].records(tags=["EVICTED_RECALL"])
    assert "3 times" in record.text
    assert record.meta["data"] == {"n": 2}
    assert record.meta["earlier"] == [
        {"event": seqs[1], "data": {"n": 1}},
        {"event": seqs[0], "data": {"n": 0}},
    ]


def test_secrets_and_their_field_names_stay_as_written(memory: MemoryManager) -> None:
    text = "password: optional field, api_key=sk-live-0123456789abcdef0123456789"
    record = memory.write_archival("a", text)
    memory.write_event("a", "k", text)
    memory.set_core("a", "form", text)
    assert memory.mem_archival_get(record, branch_id="a")["text"] == text
    assert memory.mem_recall_search("", branch_id="a")[0]["summary"] == text
    assert memory.get_core("a", "form") == text
    assert memory.render_for_prompt("a").count(text) == 3
