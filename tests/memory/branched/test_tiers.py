"""Core, recall and archival memory of one branch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memories import Clock, Open

from taskweaver.memory.branched import InvalidUpdate, MemoryManager, RecordNotVisible, UnknownBranch
from taskweaver.utils.redact import MASK

SECRET = "sk-" + "a1B2" * 8


def texts(memory: MemoryManager, branch: str) -> list[str]:
    return sorted(item.text for item in memory[branch].records())


@pytest.mark.parametrize(
    ("ttl", "seconds"), [(90, 90), ("30m", 1800), ("1.5h", 5400), ("7d", 604800)]
)
def test_a_key_ends_in_time(memory: MemoryManager, clock: Clock, ttl: Any, seconds: float) -> None:
    memory.mem_core_set("goal", "for a while", ttl=ttl, branch_id="a")
    clock.now += seconds - 1
    assert memory.get_core("a", "goal") == "for a while"
    clock.now += 1
    assert memory.get_core("a", "goal") == "a faster solver"  # the inherited value
    assert "for a while" not in memory.render_for_prompt("a")
    assert memory.get_core("root", "goal") == "a faster solver"


def test_core_overflow_goes_to_archival_least_important_first(open_rooted: Open) -> None:
    memory = open_rooted(core_max_chars=200)
    memory.mem_core_set("pinned", "p" * 60, importance=5)
    memory.mem_core_set("old", "o" * 50)
    memory.mem_core_set("heavy", "h" * 40, importance=4)
    memory.mem_core_set("new", "n" * 50)
    assert set(memory.root.core.entries()) == {"pinned", "heavy", "new"}
    (moved,) = memory["root"].records(tags=["CORE_EVICT"])
    assert moved.text == "Core evicted: old\n" + "o" * 50
    assert "core_key:old" in moved.tags
    with pytest.raises(InvalidUpdate, match="archival memory"):
        memory.mem_core_set("huge", "x" * 500)


@pytest.mark.parametrize("field", ["summary", "content", "text"])
def test_an_event_keeps_what_it_is_told(memory: MemoryManager, field: str) -> None:
    event = {
        "kind": "compile_failed", field: "ld: not found", "refs": ["log:1"], "phase": "compile",
        "commands_run": ["make"], "node_id": "n1", "ts": 5,
    }  # fmt: skip
    seq = memory.mem_recall_append(event, branch_id="a")
    (found,) = memory.mem_recall_search("ld", branch_id="a")
    assert (found["id"], found["kind"], found["summary"]) == (seq, event["kind"], event[field])
    assert found["commands_run"] == ["make"]
    assert {"phase:compile", "ref:log:1", "node_id:n1"} <= set(found["tags"])


def test_the_branch_of_an_event_may_stand_in_it(memory: MemoryManager) -> None:
    memory.mem_recall_append({"kind": "k", "content": "x", "branch_id": "a"})
    memory.mem_recall_append({"kind": "k", "content": "y", "node_id": "b"})
    assert [event.text for event in memory["a"].events()] == ["x"]
    assert [event.text for event in memory["b"].events()] == ["y"]
    with pytest.raises(UnknownBranch):
        memory.mem_recall_append({"content": "z", "node_id": "nobody"})


def test_events_are_evicted_word_for_word_and_only_for_the_branch(memory: MemoryManager) -> None:
    memory.write_event("root", "note", "inherited words")
    memory.fork("root", "c")
    for n in range(3):
        memory.write_event("c", "step", f"step {n}")
    result = memory.apply_llm_memory_updates("c", {"recall_evict": {"oldest": 2}})
    assert result["recall_evict"]["evicted_count"] == 2
    assert {event.text for event in memory["c"].events()} == {"step 1", "step 2"}
    texts = [item.text for item in memory["c"].records(tags=["EVICTED_RECALL"])]
    assert any("inherited words" in text for text in texts)
    assert [event.text for event in memory["root"].events()] == ["inherited words"]
    memory.apply_llm_memory_updates("c", {"recall_evict": {"kind": "step"}})
    assert memory["c"].events() == []
    memory.write_event("c", "step", "step 1")
    assert [event.text for event in memory["c"].events()] == ["step 1"]


def test_a_siblings_event_or_record_cannot_be_touched(memory: MemoryManager) -> None:
    seq = memory.write_event("b", "k", "of b")
    record = memory.mem_archival_write("text of b", tags=["T"], branch_id="b")
    for call in (
        lambda: memory.apply_llm_memory_updates("a", {"recall_evict": {"ids": [seq]}}),
        lambda: memory.mem_archival_update(record, text="stolen", branch_id="a"),
        lambda: memory.mem_archival_get(record, branch_id="a"),
        lambda: memory.mem_archival_get("no number", branch_id="a"),
        lambda: memory.promote("nokey", "root", branch_id="a"),
    ):
        with pytest.raises(RecordNotVisible):
            call()
    with pytest.raises(InvalidUpdate, match="neither"):
        memory.mem_archival_update(record, branch_id="b")
    assert memory.mem_archival_get(record, branch_id="b")["text"] == "text of b"


def test_copies_are_masked_unless_private(memory: MemoryManager, open_memory: Open) -> None:
    memory.mem_core_set("note", f"api_key={SECRET}", branch_id="a")
    memory.write_event("a", "k", f'{{"token": "{SECRET}"}}', env={"token": f"Bearer {SECRET}"})
    id_ = memory.mem_archival_write(f"password: {SECRET}", meta={"password": 1}, branch_id="a")
    assert memory.get_core("a", "note") == f"api_key={SECRET}"
    assert memory.mem_archival_get(id_, branch_id="a")["text"] == f"password: {SECRET}"
    export, page = (memory.path.with_name(name) for name in ("out.jsonl", "page.html"))
    memory.export(export)
    memory.write_page(page)
    for copy in (export, page, *(memory.path.parent / "logs").glob("*.jsonl")):
        assert SECRET not in copy.read_text()
    assert MASK in export.read_text()
    memory.export(export, is_private=True)
    assert export.stat().st_mode & 0o077 == 0
    other = open_memory("other.sqlite")
    other.import_(export)
    assert other.get_core("a", "note") == f"api_key={SECRET}"


@pytest.fixture(scope="module")
def of_any_text(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryManager]:
    """Give a memory that keeps one text after another."""
    with MemoryManager(tmp_path_factory.mktemp("any") / "m.sqlite") as memory:
        memory.bind(memory.create_branch(None, branch_id="root"))
        yield memory


@given(text=st.text(max_size=300))
def test_any_text_is_kept_as_it_is_or_refused(of_any_text: MemoryManager, text: str) -> None:
    try:
        id_ = of_any_text.mem_archival_write(text)
    except InvalidUpdate:
        assert not text.strip() or "\0" in text
    else:
        assert of_any_text.mem_archival_get(id_)["text"] == text
        of_any_text.mem_archival_search(text)


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


def test_a_merge_does_not_bring_back_a_deleted_record(memory: MemoryManager) -> None:
    inherited = memory.write_archival("root", "inherited")
    memory.fork("root", "c")
    memory.fork("root", "d")
    memory.write_archival("c", "of c")
    memory.merge("c", "d", "theirs")
    copy = next(item.id for item in memory["d"].records() if item.text == "of c")
    memory.apply_llm_memory_updates("d", {"archival_delete": [inherited, copy]})
    memory.merge("c", "d", "theirs")
    assert texts(memory, "d") == []
    own = [item.id for item in memory["c"].records() if item.text == "of c"]
    memory.apply_llm_memory_updates("c", {"archival_delete": own})
    memory.write_archival("c", "of c")
    memory.merge("c", "d", "theirs")
    assert texts(memory, "d") == ["of c"]


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


def test_expiry_in_the_past_by_rows_of_any_table(memory: MemoryManager, clock: Clock) -> None:
    memory.mem_core_set("hint", "soon over", ttl=60, branch_id="a")
    clock.now += 61
    memory["a"].note_injection(memory["a"].render(), None)  # other tables: test_property
    assert "hint" not in memory["a"].core.entries(at=memory.seq)
    assert "hint" in memory["a"].core.entries(at=memory.seq - 1)


def test_a_merge_keeps_what_only_the_target_changed(memory: MemoryManager) -> None:
    record = memory.mem_archival_write("threads=8", branch_id="root")
    memory.fork("root", "left")
    memory.fork("root", "right")
    memory.mem_archival_update(record, text="threads=4", branch_id="right")
    assert memory.merge("left", "right", "theirs").taken == []
    assert texts(memory, "right") == ["threads=4"]
    assert memory.merge("right", "left", "theirs").taken != []
    assert texts(memory, "left") == ["threads=4", "threads=8"]


def test_meta_of_a_text_that_is_kept_already_is_kept_too(memory: MemoryManager) -> None:
    record = memory.mem_archival_write("threads=8", meta={"run": 1}, branch_id="a")
    before = memory.seq
    assert memory.mem_archival_write("threads=8", meta={"run": 1}, branch_id="a") == record
    assert memory.seq == before
    assert memory.mem_archival_write("threads=8", meta={"host": "x"}, branch_id="a") == record
    kept = memory.mem_archival_get(record, branch_id="a")
    assert kept["meta"] == {"run": 1, "host": "x"}
    assert texts(memory, "a") == ["threads=8"]
