"""An erased text is in no byte of the memory, of its logs and of the files beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from memories import Open

from taskweaver.memory.branched import InvalidUpdate, MemoryManager
from taskweaver.memory.branched.protocol.injections import MemoryPromptLog

SECRETS = {
    "plain": "Alice lives at 12 Elm Street, floor 3",
    "two lines and quotes": 'the "harbour" house\nby the \\ river, second door',
    "umlauts": "Größe und Maß der Tür im Süden",
    "chinese": "收入是指扣除税和退货后的净额",
    "arabic": "عنوان البيت في الشارع القديم",
    "emoji": "meet 🐙 at the 🌊 pier after dark",
    "markup": "use <b>bold</b> & *stars* [here] for x_y",
}


def forms(text: str) -> set[bytes]:
    """Return a text as files may hold it."""
    inner = {json.dumps(text, ensure_ascii=ascii_)[1:-1] for ascii_ in (True, False)}
    outer = {
        json.dumps(form, ensure_ascii=ascii_)[1:-1] for form in inner for ascii_ in (True, False)
    }
    return {form.encode() for form in {text, " ".join(text.split()), *inner, *outer}}


def holders(folder: Path, text: str) -> list[str]:
    """Return the files that hold a text in any form."""
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(form in path.read_bytes() for form in forms(text))
    ]


@pytest.fixture
def logged(open_memory: Open, tmp_path: Path) -> MemoryManager:
    """A memory with logs: a live root, two children, a grandchild."""
    memory = open_memory(memory_log_enabled=True, recall_max_events=3, core_max_chars=400)
    memory.create_branch(None, branch_id="root", live=True)
    memory.mem_core_set("goal", "a faster solver", branch_id="root")
    for name in ("a", "b"):
        memory.fork("root", name)
    memory.fork("a", "c")
    return memory


def fill(memory: MemoryManager, text: str, folder: Path) -> dict[str, Any]:
    """Bring a text wherever a memory can hold it; return what it is known by."""
    record = memory.mem_archival_write(f"{text}", tags=["T"], branch_id="root")
    memory.mem_archival_update(record, text=f"{text} (seen)", branch_id="c")
    memory.mem_archival_update(record, tags=["U"], branch_id="b")
    event = memory.write_event("a", "k", text)
    memory.write_event("a", "k", text)
    for number in range(12):
        memory.write_event("a", "step", f"step {number} is done")
    memory.apply_llm_memory_updates("a", {"recall_evict": {"ids": [event + 1]}})
    memory.mem_core_set("note", text, branch_id="a")
    memory.fork("a", "d")
    memory.mem_core_set("note", text, branch_id="d", importance=1)
    memory.mem_core_set("filler", "x" * 380, branch_id="d", importance=4)
    memory.consolidate_recall_events("a")
    memory.promote(int(record), "b", branch_id="a")
    memory.merge("a", "b", "theirs")
    block = {"core_get": ["note"], "archival_search": {"query": text}, "recall_search": text}
    results = memory.apply_llm_memory_updates("c", block, attempt=1)
    shown = memory.render_for_prompt_with_log("a", task=text)
    memory["a"].note_injection(shown, text)
    log = MemoryPromptLog(folder / "memory")
    log.injection(shown)
    log.operations({"archival": [{"text": text}]}, results)
    memory.generate_final_memory_for_paper(folder, "root", "a")
    memory.write_page(folder / "memory_database.html")
    return {"record_id": record, "event_id": event, "key": "note", "text": text}


@pytest.mark.parametrize("name", SECRETS)
def test_a_text_is_gone_from_every_byte(logged: MemoryManager, tmp_path: Path, name: str) -> None:
    text = SECRETS[name]
    fill(logged, text, tmp_path)
    assert holders(tmp_path, text)
    kept = [(item.id, item.text) for item in logged["b"].records() if text not in item.text]
    done = logged.erase(text=text)
    escaped = {Path(item.path).suffix for item in done.untouched}
    assert escaped == ({".md"} if name == "markup" else set())
    assert {"archival", "core_kv", "events", "applied_blocks", "injections"} <= set(done.rows)
    assert holders(tmp_path, text) == []
    assert logged.verify().is_sound
    left = {item.id: item.text for item in logged["b"].records()}
    assert kept == [pair for pair in kept if left.get(pair[0]) == pair[1]]
    again = logged.erase(text=text)
    assert (again.rows, again.files) == ({}, ())
    logged.close()
    assert holders(tmp_path, text) == []


@pytest.mark.parametrize("by", ["record_id", "event_id", "key"])
def test_what_a_record_an_event_or_a_key_held_is_gone(
    logged: MemoryManager, tmp_path: Path, by: str
) -> None:
    text = SECRETS["two lines and quotes"]
    known = fill(logged, text, tmp_path)
    done = logged.erase(**{by: known[by]})
    assert done.is_complete
    assert holders(tmp_path, text) == []
    assert logged.verify().is_sound
    assert logged.erase(**{by: known[by]}).rows == {}


def test_other_rows_stay_as_they_are(logged: MemoryManager) -> None:
    logged.write_archival("b", "another record", ["T"])
    logged.write_event("b", "k", "another event")
    logged.mem_core_set("other", "another value", branch_id="b")
    before = rows(logged)
    record = logged.write_archival("a", SECRETS["plain"])
    event = logged.write_event("a", "k", SECRETS["umlauts"])
    logged.mem_core_set("note", SECRETS["chinese"], branch_id="a")
    logged.erase(record_id=record)
    logged.erase(event_id=event)
    logged.erase(key="note")
    after = rows(logged)
    assert after == before


def rows(memory: MemoryManager) -> dict[str, list[Any]]:
    reading = memory._parts.database.reading
    return {
        table: reading.execute(f"SELECT * FROM {table}").fetchall()
        for table in ("branches", "core_kv", "events", "archival", "digests", "exclusions")
    }


def test_a_row_that_contains_the_text_keeps_the_rest(logged: MemoryManager) -> None:
    record = logged.write_archival("a", "The key is under the mat, says Alice.", ["of Alice"])
    logged.write_event("a", "k", "Alice left", refs=["Alice"])
    logged.mem_core_set("Alice's room", "Alice sleeps upstairs", branch_id="a")
    logged.erase(text="Alice")
    assert logged.mem_archival_get(record, branch_id="a")["text"] == (
        "The key is under the mat, says [erased]."
    )
    assert [event.text for event in logged["a"].events()] == ["[erased] left"]
    assert logged.mem_core_get(["[erased]'s room"], branch_id="a") == {
        "[erased]'s room": "[erased] sleeps upstairs"
    }
    assert logged.mem_archival_search("Alice", branch_id="a")[0]["match"] == "recency"
    assert logged.mem_archival_search("mat", branch_id="a")[0]["match"] == "query"
    assert logged.verify().is_sound


def test_what_is_nothing_but_the_text_is_hidden_and_its_former_value_stays_so(
    logged: MemoryManager,
) -> None:
    text = SECRETS["plain"]
    record = logged.write_archival("a", "before")
    logged.mem_archival_update(record, text=text, branch_id="a")
    logged.mem_core_set("goal", text, branch_id="a")
    logged.write_event("a", "k", text)
    logged.erase(text=text)
    assert logged["a"].records() == []
    assert "goal" not in logged["a"].core
    assert logged["a"].events() == []
    assert logged["b"].core["goal"] == "a faster solver"


def test_short_values_of_a_key_are_found_beside_it_alone(
    logged: MemoryManager, tmp_path: Path
) -> None:
    logged.mem_core_set("threads", "8", branch_id="a", importance=1)
    logged.mem_core_set("depth", "8", branch_id="a")
    logged.write_event("a", "k", "8")
    logged.write_archival("a", "8 is even")
    logged._parts.database.write(
        lambda writer: logged._parts.core.evict(
            writer, logged._parts.branches.find(writer.connection, "a"), ["threads"]
        )
    )
    assert logged.mem_archival_search("threads", branch_id="a")[0]["match"] == "query"
    done = logged.erase(key="threads")
    assert done.rows == {"core_kv": 2, "archival": 1}
    assert logged.mem_core_get(["depth", "threads"], branch_id="a") == {"depth": "8"}
    assert [item.text for item in logged["a"].records()] == ["8 is even"]
    assert [event.text for event in logged["a"].events()] == ["8"]
    calls = (tmp_path / "logs" / "memory_calls.jsonl").read_text()
    previews = [
        (line["details"]["key"], line["details"]["value_preview"])
        for line in map(json.loads, calls.splitlines())
        if line["op"] == "mem_core_set" and line["branch_id"] == "a"
    ]
    assert previews == [("threads", "*"), ("depth", "8")]


def test_a_digest_that_covers_an_erased_event_is_removed(open_memory: Open) -> None:
    def paraphrase(prompt: str) -> str:
        return "Somebody told of their home by the sea."

    memory = open_memory(llm=paraphrase, recall_max_events=2, auto_consolidate=False)
    memory.create_branch(None, branch_id="root")
    event = memory.write_event("root", "told", SECRETS["plain"])
    for number in range(5):
        memory.write_event("root", "step", f"step {number}" + " on" * 150)
    memory.consolidate_recall_events("root")
    memory.fork("root", "below")
    memory.fork("root", "early", at=event)
    digest = memory["below"].digest()
    assert digest is not None
    assert "home by the sea" in digest.text
    assert memory.erase(event_id=event).rows["digests"] == 1
    assert memory["below"].digest() is None
    assert b"home by the sea" not in memory.path.read_bytes()
    assert memory.verify().is_sound


def test_a_digest_of_core_memory_is_made_again(open_memory: Open) -> None:
    memory = open_memory(core_max_chars=300, llm=lambda _: "Alice dwells in Elm Street.")
    memory.create_branch(None, branch_id="root")
    memory.bind("root")
    memory.mem_core_set("home", SECRETS["plain"])
    memory.mem_core_set("threads", "eight of them " + "x" * 200, importance=4)
    memory.auto_consolidate_memory("root", "critical")
    assert "Elm Street" in memory["root"].core["CoreDigest"]
    assert memory.erase(key="home").is_complete
    value = memory["root"].core["CoreDigest"]
    assert "Elm Street" not in value
    assert "threads: eight" in value or "home: [erased]" in value
    assert b"Elm Street" not in memory.path.read_bytes()


def test_a_conversation_loses_the_text_and_the_summaries_of_it(logged: MemoryManager) -> None:
    turns, summaries = logged._parts.turns, logged._parts.summaries
    first = turns.start_round("root", "r1", f"I am told: {SECRETS['plain']}")
    body = {
        "id": "p",
        "send_from": "User",
        "send_to": "Planner",
        "message": SECRETS["plain"],
        "attachment_list": [{"id": "x", "type": "reply_content", "content": "text = 1"}],
    }
    turns.add_post("root", first, json.dumps(body, ensure_ascii=True))
    turns.end_round("root", first, "finished")
    second = turns.start_round("root", "r2", "another question")
    turns.end_round("root", second, "finished")
    early = summaries.add("root", "Planner", "of nothing", up_to_seq=first - 1, count=0)
    summaries.add("root", "Planner", "they dwell near the elms", up_to_seq=first, count=1)
    logged.fork("root", "later")
    summaries.add("later", "Planner", "elms, and a question", up_to_seq=second, count=2)
    done = logged.erase(text=SECRETS["plain"])
    assert (done.rows["rounds"], done.rows["posts"], done.rows["summaries"]) == (1, 1, 2)
    assert [extent.seq for extent in summaries.extents("later", "Planner")] == [early]
    rounds = turns.load("root")
    assert [item.user_query for item in rounds] == ["I am told: [erased]", "another question"]
    assert json.loads(rounds[0].posts[0]) == {**body, "message": "[erased]"}


def test_texts_in_compressions_and_names_of_branches_are_gone(open_memory: Open) -> None:
    memory = open_memory(llm=lambda _: "short: Alice of Elm Street", archival_max_chars=60)
    memory.create_branch(None, branch_id="root")
    memory.write_archival("root", "long " * 40)
    for name in ("for Alice", "for [erased]"):
        memory.fork("root", name)
    assert memory.erase(text="Alice").rows == {"archival": 1, "compressions": 1, "branches": 1}
    assert len({branch.id for branch in memory.branches()}) == 3
    assert b"Alice" not in memory.path.read_bytes()
    assert memory.verify().is_sound


def test_copies_that_came_by_import_are_gone_too(logged: MemoryManager, open_memory: Open) -> None:
    record = logged.write_archival("a", SECRETS["plain"])
    file = logged.path.with_name("out.jsonl")
    logged.export(file, is_private=True)
    other = open_memory("other.sqlite")
    other.create_branch(None, branch_id="home")
    own = other.write_archival("home", SECRETS["plain"])
    other.import_(file)
    assert other.erase(record_id=own).rows == {"archival": 2}
    assert SECRETS["plain"].encode() not in other.path.read_bytes()
    assert record


@pytest.mark.parametrize("use_fts", ["auto", "off"])
def test_no_word_of_it_stays_in_the_index(open_memory: Open, use_fts: str) -> None:
    memory = open_memory(use_fts=use_fts)
    memory.create_branch(None, branch_id="root")
    memory.write_archival("root", "the Xylophonist of Quedlinburg")
    memory.write_archival("root", "another record")
    memory.erase(text="Xylophonist of Quedlinburg")
    data = memory.path.read_bytes().lower()
    assert b"xylophonist" not in data
    assert b"quedlinburg" not in data
    assert memory.mem_archival_search("another", branch_id="root")[0]["match"] == "query"
    assert memory.verify().is_sound


def test_no_word_stays_of_a_record_that_was_removed_as_garbage(open_memory: Open) -> None:
    memory = open_memory()
    memory.create_branch(None, branch_id="root")
    memory.fork("root", "tried")
    memory.write_archival("tried", "the Xylophonist of Quedlinburg")
    memory.prune("tried")
    assert memory.collect_garbage().rows == {"archival": 1}
    assert memory.erase(text="Xylophonist of Quedlinburg").is_complete
    assert b"xylophonist" not in memory.path.read_bytes().lower()


def test_a_dry_run_names_the_places_and_changes_nothing(
    logged: MemoryManager, tmp_path: Path
) -> None:
    text = SECRETS["plain"]
    fill(logged, text, tmp_path)
    logged._parts.log.flush()
    before, found = rows(logged), holders(tmp_path, text)
    would = logged.erase(text=text, dry_run=True)
    assert would.is_dry
    assert (rows(logged), holders(tmp_path, text)) == (before, found)
    done = logged.erase(text=text)
    assert (would.rows, would.files) == (done.rows, done.files)


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"text": "a", "key": "b"},
        {"text": "x"},
        {"text": "  "},
        {"text": "erased"},
        {"text": "\0\0\0"},
        {"record_id": "seven"},
        {"event_id": -1},
        {"record_id": 2**63},
        {"key": ""},
    ],
)
def test_a_malformed_target_is_refused(memory: MemoryManager, target: dict[str, Any]) -> None:
    with pytest.raises(InvalidUpdate):
        memory.erase(**target)
