"""Core, recall and archival memory of one branch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memories import Clock, Open

from taskweaver.memory.branched import (
    InvalidUpdate,
    MemoryManager,
    RecordNotVisible,
    UnknownBranch,
)
from taskweaver.utils.redact import MASK


def test_a_delete_hides_a_key_below_and_leaves_the_ancestor_alone(memory: MemoryManager) -> None:
    assert memory.mem_core_del("goal", branch_id="a")
    assert not memory.mem_core_del("goal", branch_id="a")
    memory.fork("a", "a2")
    assert memory.get_core("a2", "goal") is None
    assert memory.get_core("root", "goal") == "a faster solver"
    memory.set_core("a2", "goal", "again")
    assert memory.get_core("a2", "goal") == "again"


@pytest.mark.parametrize(
    ("ttl", "seconds"), [(90, 90), ("30m", 1800), ("2h", 7200), ("7d", 604800), ("1.5h", 5400)]
)
def test_a_key_ends_when_its_time_is_up(
    memory: MemoryManager, clock: Clock, ttl: Any, seconds: float
) -> None:
    memory.mem_core_set("goal", "for a while", ttl=ttl, branch_id="a")
    clock.now += seconds - 1
    assert memory.get_core("a", "goal") == "for a while"
    clock.now += 1
    assert memory.get_core("a", "goal") == "a faster solver"  # the inherited value
    assert "for a while" not in memory.render_for_prompt("a")
    assert memory.get_core("root", "goal") == "a faster solver"


@pytest.mark.parametrize("ttl", ["soon", "-1", "5 weeks", -3, float("nan"), True, [1]])
def test_a_malformed_ttl_is_refused(memory: MemoryManager, ttl: Any) -> None:
    with pytest.raises(InvalidUpdate, match="ttl"):
        memory.mem_core_set("k", "v", ttl=ttl)
    assert memory.get_core("root", "k") is None


def test_what_does_not_fit_goes_to_archival_least_important_and_oldest_first(
    open_memory: Open,
) -> None:
    memory = open_memory(core_max_chars=200)
    memory.bind(memory.create_branch(None, branch_id="root"))
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


def test_an_inherited_key_that_is_evicted_stays_with_the_ancestor(open_memory: Open) -> None:
    memory = open_memory(core_max_chars=100)
    memory.bind(memory.create_branch(None, branch_id="root"))
    memory.mem_core_set("up", "u" * 60)
    memory.fork("root", "a")
    memory.mem_core_set("own", "o" * 60, branch_id="a")
    assert set(memory["a"].core.entries()) == {"own"}
    assert set(memory["root"].core.entries()) == {"up"}


@pytest.mark.parametrize("field", ["summary", "content", "text"])
def test_an_event_keeps_what_it_is_told(memory: MemoryManager, field: str) -> None:
    event = {
        "kind": "compile_failed", field: "ld: not found", "refs": ["log:1"], "phase": "compile",
        "commands_run": ["make"], "node_id": "n1", "ts": 5,
    }  # fmt: skip
    seq = memory.mem_recall_append(event, branch_id="a")
    (found,) = memory.mem_recall_search("ld", branch_id="a")
    assert (found["id"], found["kind"], found["summary"]) == (
        seq,
        "compile_failed",
        "ld: not found",
    )
    assert found["commands_run"] == ["make"]
    assert {"phase:compile", "ref:log:1", "node_id:n1"} <= set(found["tags"])


def test_repetitions_are_counted_not_dropped(memory: MemoryManager) -> None:
    for _ in range(3):
        memory.write_event("a", "run_failed", "segfault")
    memory.write_event("a", "run_failed", "another")
    then = memory.seq
    memory.write_event("a", "run_failed", "segfault")
    counts = {event.text: event.count for event in memory["a"].events()}
    assert counts == {"segfault": 4, "another": 1}
    assert {event.text: event.count for event in memory["a"].events(at=then)}["segfault"] == 3


def test_the_branch_of_an_event_may_stand_in_it(memory: MemoryManager) -> None:
    memory.mem_recall_append({"kind": "k", "content": "x", "branch_id": "a"})
    memory.mem_recall_append({"kind": "k", "content": "y", "node_id": "b"})
    assert [event.text for event in memory["a"].events()] == ["x"]
    assert [event.text for event in memory["b"].events()] == ["y"]
    with pytest.raises(UnknownBranch):
        memory.mem_recall_append({"content": "z", "node_id": "nobody"})


@pytest.mark.parametrize(
    "event",
    [{}, {"kind": "k"}, {"content": ""}, {"content": "a\0b"}, {"content": "\ud800"},
     {"content": ["x"]}, {"content": "x", "kind": "a\nb"}, {"content": "x", "tags": 5},
     {"content": "x", "refs": "r"}, {"content": "x", "data": {1, 2}},
     {"content": "x", "n": float("nan")}],
)  # fmt: skip
def test_a_malformed_event_is_refused_and_nothing_is_kept(
    memory: MemoryManager, event: dict[str, Any]
) -> None:
    before = memory.seq
    with pytest.raises(InvalidUpdate):
        memory.mem_recall_append(event, branch_id="a")
    assert memory.seq == before


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
    assert memory.mem_archival_get(record, branch_id="b")["text"] == "text of b"


def test_an_update_overlays_from_the_branch_on_and_keeps_the_tags(memory: MemoryManager) -> None:
    record = memory.mem_archival_write("first", tags=["T", "U"], branch_id="root")
    memory.fork("root", "c")
    memory.fork("c", "c2")
    memory.mem_archival_update(record, text="second", branch_id="c")
    assert memory.mem_archival_get(record, branch_id="c")["text"] == "second"
    assert memory.mem_archival_get(record, branch_id="c")["tags"] == ["T", "U"]
    assert memory.mem_archival_get(record, branch_id="c2")["text"] == "first"
    assert memory.mem_archival_get(record, branch_id="root")["text"] == "first"
    memory.mem_archival_update(record, tags=["V"], meta={"a": 1}, branch_id="c")
    found = memory.mem_archival_get(record, branch_id="c")
    assert (found["text"], found["tags"], found["meta"]) == ("second", ["V"], {"a": 1})
    with pytest.raises(InvalidUpdate, match="neither"):
        memory.mem_archival_update(record, branch_id="c")


def test_the_same_record_is_kept_once(memory: MemoryManager) -> None:
    first = memory.mem_archival_write("x", tags=["T"], branch_id="a")
    assert memory.mem_archival_write("x", tags=["T"], branch_id="a") == first
    assert memory.mem_archival_write("x", tags=["U"], branch_id="a") != first


@pytest.mark.parametrize("text", ["", "  ", "a\0", "\udfff", None, ["x"], b"x"])
def test_a_record_that_is_no_text_is_refused(memory: MemoryManager, text: Any) -> None:
    with pytest.raises(InvalidUpdate):
        memory.mem_archival_write(text, branch_id="a")
    assert memory["a"].records() == []


def test_the_file_of_a_memory_is_its_owners_alone(open_memory: Open) -> None:
    memory = open_memory("new.sqlite", is_new=True)
    assert memory.path.stat().st_mode & 0o077 == 0


def test_a_memory_keeps_texts_as_they_are_and_its_copies_are_masked(memory: MemoryManager) -> None:
    secret = "sk-" + "a1B2" * 8
    memory.mem_core_set("note", f"api_key={secret}", branch_id="a")
    memory.write_event("a", "k", f'{{"token": "{secret}"}}', env={"token": f"Bearer {secret}"})
    id_ = memory.mem_archival_write(f"password: {secret}", meta={"password": 1}, branch_id="a")
    assert memory.get_core("a", "note") == f"api_key={secret}"
    assert memory.mem_archival_get(id_, branch_id="a")["text"] == f"password: {secret}"
    copies = [memory.path.with_name(name) for name in ("out.jsonl", "page.html")]
    memory.export(copies[0])
    memory.write_page(copies[1])
    logs = [*(memory.path.parent / "logs").glob("*.jsonl")]
    for copy in (*copies, *logs):
        assert secret not in copy.read_text()
    assert MASK in copies[0].read_text()


def test_a_private_export_is_exact_and_its_owners_alone(
    memory: MemoryManager, open_memory: Open
) -> None:
    text = "a key: sk-" + "a1B2" * 8
    memory.mem_core_set("note", text, branch_id="a")
    file = memory.path.with_name("out.jsonl")
    memory.export(file, is_private=True)
    assert file.stat().st_mode & 0o077 == 0
    other = open_memory("other.sqlite")
    other.import_(file)
    assert other.get_core("a", "note") == text


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


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.mem_core_set(None, "v"),
        lambda m: m.mem_core_set("k", {"a": 1}),
        lambda m: m.mem_core_set("k", "v", importance="high"),
        lambda m: m.mem_core_set("k", "v", ttl=10**400),
        lambda m: m.mem_recall_append(None),
        lambda m: m.mem_archival_search(None),
        lambda m: m.mem_archival_search("x", tags=5),
        lambda m: m.mem_archival_search("x", tags=[5]),
        lambda m: m["root"].records(limit=-1),
        lambda m: m["root"].events(limit="all"),
        lambda m: m["root"].core.entries(at="then"),
        lambda m: m.fork("root", at="then"),
        lambda m: m.render_for_prompt("root", budget_chars="much"),
        lambda m: m.auto_consolidate_memory("root", "extreme"),
        lambda m: m.create_branch("root", node_uid="\ud800"),
        lambda m: m.mem_node_write("root", core_updates=5),
        lambda m: m[5].core.entries(),
        lambda m: m[["root"]].core.entries(),
        lambda m: m.mem_archival_get(10**30),
        lambda m: m.mem_archival_get(None),
    ],
)
def test_a_value_of_the_wrong_sort_is_an_error_of_ours(memory: MemoryManager, call: Any) -> None:
    before = memory.seq
    with pytest.raises((InvalidUpdate, UnknownBranch, RecordNotVisible)):
        call(memory)
    assert memory.seq == before


def test_one_key_or_tag_may_stand_alone(memory: MemoryManager) -> None:
    memory.mem_archival_write("x", tags=["T"], branch_id="a")
    assert memory.mem_core_get("goal", branch_id="a") == {"goal": "a faster solver"}
    assert len(memory.mem_archival_search("x", tags="T", branch_id="a")) == 1
