"""An erased text is in no byte of the memory, of its logs and of the files beside it.

An erasure reaches other processes, and survives a kill.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memories import QUIET, Open
from patience import PATIENCE_S

from taskweaver.memory.branched import InvalidUpdate, MemoryManager
from taskweaver.memory.branched.protocol.audit import MemoryPromptLog

SECRETS = {
    "plain": "Alice lives at 12 Elm Street, floor 3",
    "two lines and quotes": 'the "harbour" house\nby the \\ river, second door',
    "umlauts": "Größe und Maß der Tür im Süden",
    "chinese": "收入是指扣除税和退货后的净额",
    "emoji": "meet 🐙 at the 🌊 pier after dark",
    "markup": "use <b>bold</b> & *stars* [here] for x_y",
}

SECRET = "Alice lives at 12 Elm Street, Zürich"


def forms(text: str) -> set[bytes]:
    """Return a text as files may hold it."""
    found = {text}
    for _ in range(2):  # JSON in JSON
        found |= {json.dumps(form, ensure_ascii=a)[1:-1] for form in found for a in (True, False)}
    return {form.encode() for form in {*found, " ".join(text.split())}}


def holders(folder: Path, text: str = SECRET) -> list[str]:
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
    log.operations({**block, "archival": [{"text": text}]}, {**results, "archival": [record]})
    memory.generate_final_memory_for_paper(folder, "root", "a")
    memory.write_page(folder / "memory_database.html")
    return {"record_id": record, "event_id": event, "key": "note", "text": text}


@pytest.mark.parametrize(
    ("name", "by"),
    [("chinese", "text"), ("emoji", "text"), ("markup", "text")]
    + [("two lines and quotes", by) for by in ("text", "record_id", "event_id", "key")],
)
def test_no_byte_of_a_text_stays(logged: MemoryManager, tmp_path: Path, name: str, by: str) -> None:
    text = SECRETS[name]
    target = {by: fill(logged, text, tmp_path)[by]}
    assert holders(tmp_path, text)
    kept = {item.id: item.text for item in logged["b"].records() if text not in item.text}
    done = logged.erase(**target)
    escaped = {Path(item.path).suffix for item in done.untouched}
    assert escaped == ({".md"} if name == "markup" else set())
    assert {"archival", "core_kv", "events", "applied_blocks", "injections"} <= set(done.rows)
    assert holders(tmp_path, text) == []
    assert logged.verify().is_sound
    assert kept.items() <= {item.id: item.text for item in logged["b"].records()}.items()
    again = logged.erase(**target)
    assert (again.rows, again.files) == ({}, ())
    logged.close()
    assert holders(tmp_path, text) == []


def rows(memory: MemoryManager) -> dict[str, list[Any]]:
    reading = memory._parts.database.reading
    return {
        table: reading.execute(f"SELECT * FROM {table}").fetchall()
        for table in ("branches", "core_kv", "events", "archival", "digests", "exclusions")
    }


def test_short_values_of_a_key_are_found_beside_it_alone(logged: MemoryManager) -> None:
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
    assert {Path(item.path).name: item.reason for item in done.untouched} == dict.fromkeys(
        ("memory_calls.jsonl", "memory_primitive.jsonl", "memory_public_api.jsonl"),
        "it holds a short text as a value",
    )


def test_the_longest_value_beside_a_key_is_found(logged: MemoryManager) -> None:
    values = ["\n".join("12345"[:count]) for count in range(1, 6)]
    for value in values:
        logged.mem_core_set("threads", value, branch_id="a")
    logged.write_event("a", "k", f"threads: {values[-1]}")
    logged.erase(key="threads")
    assert [event.text for event in logged["a"].events()] == ["threads: [erased]"]


def test_a_digest_that_covers_an_erased_event_is_removed(open_rooted: Open) -> None:
    options = {"recall_max_events": 2, "auto_consolidate": False}
    memory = open_rooted(llm=lambda _: "A home by the sea.", **options)
    event = memory.write_event("root", "told", SECRETS["plain"])
    for number in range(5):
        memory.write_event("root", "step", f"step {number}" + " on" * 150)
    memory.consolidate_recall_events("root")
    memory.fork("root", "below")
    assert "by the sea" in memory["below"].digest().text  # type: ignore[union-attr]
    assert memory.erase(event_id=event).rows["digests"] == 1
    assert memory["below"].digest() is None
    assert b"home by the sea" not in memory.path.read_bytes()
    assert memory.verify().is_sound


def test_a_digest_of_core_memory_is_made_again(open_rooted: Open) -> None:
    memory = open_rooted(core_max_chars=300, llm=lambda _: "Alice dwells in Elm Street.")
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
    body = {"id": "p", "send_from": "User", "send_to": "Planner", "message": SECRETS["plain"]}
    body |= {"attachment_list": [{"id": "x", "type": "reply_content", "content": "text = 1"}]}  # type: ignore[dict-item]
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


def test_texts_in_compressions_and_names_of_branches_are_gone(open_rooted: Open) -> None:
    memory = open_rooted(llm=lambda _: "short: Alice of Elm Street", archival_max_chars=60)
    memory.write_archival("root", "long " * 40)
    for name in ("for Alice", "for [erased]"):
        memory.fork("root", name)
    assert memory.erase(text="Alice").rows == {"archival": 1, "compressions": 1, "branches": 1}
    assert len({branch.id for branch in memory.branches()}) == 3
    assert b"Alice" not in memory.path.read_bytes()
    assert memory.verify().is_sound


@pytest.mark.parametrize("use_fts", ["auto", "off"])
def test_no_word_of_it_stays_in_the_index(open_rooted: Open, use_fts: str) -> None:
    """Nor of a record that was removed as garbage."""
    memory = open_rooted(use_fts=use_fts)
    memory.write_archival("root", "the Xylophonist of Quedlinburg")
    memory.write_archival("root", "another record")
    memory.fork("root", "tried")
    memory.write_archival("tried", "a Xylophonist of Quedlinburg")
    assert memory.mem_archival_search("Xylophonist", branch_id="tried")[0]["match"] == "query"
    memory.prune("tried")
    assert memory.collect_garbage().rows == {"archival": 1}
    assert memory.mem_archival_search("Xylophonist", branch_id="root")[0]["match"] == "query"
    memory.erase(text="Xylophonist of Quedlinburg")
    data = memory.path.read_bytes().lower()
    assert b"xylophonist" not in data
    assert b"quedlinburg" not in data
    assert memory.mem_archival_search("another", branch_id="root")[0]["match"] == "query"
    assert memory.verify().is_sound


def test_a_dry_run_names_places_and_changes_nothing(logged: MemoryManager, tmp_path: Path) -> None:
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
    [{}, {"text": "a", "key": "b"}, {"text": "x"}, {"text": "erased"}, {"record_id": "seven"},
     {"record_id": 2**63}, {"key": ""}],
)  # fmt: skip
def test_a_malformed_target_is_refused(memory: MemoryManager, target: dict[str, Any]) -> None:
    with pytest.raises(InvalidUpdate):
        memory.erase(**target)


def test_lines_waiting_in_another_handle_lose_the_text(open_memory: Open, tmp_path: Path) -> None:
    one = open_memory(memory_log_enabled=True)
    one.create_branch(None, branch_id="root")
    two = open_memory(memory_log_enabled=True)
    two["root"].search("the first line is written at once")
    two["root"].remember(SECRET)
    two["root"].search(SECRET)
    assert one.erase(text=SECRET).is_complete
    one["root"].search("later words")
    one.close()
    two.close()
    assert holders(tmp_path) == []
    logged = (tmp_path / "logs" / "memory_calls.jsonl").read_text()
    assert logged.count('"mem_archival_search"') == 3
    assert "later words" in logged


def test_files_that_keep_the_text_are_listed(memory: MemoryManager, tmp_path: Path) -> None:
    prompts, elsewhere, final = tmp_path / "prompts", tmp_path / "elsewhere", tmp_path / "memory"
    for folder in (prompts, elsewhere, final):
        folder.mkdir()
    told = f"told: {SECRET}"
    (elsewhere / "mine.txt").write_text(told)
    (prompts / "link.log").symlink_to(elsewhere / "mine.txt")
    (prompts / "plain.log").write_text(told)
    os.mkfifo(prompts / "pipe")
    (tmp_path / "memory_old.jsonl").write_text(told)
    (tmp_path / "memory_old.jsonl").chmod(0o444)
    Path(f"{memory.path}.original").write_text(told)
    (final / "final_memory_for_paper.md").write_text(
        f"{SECRET}, {SECRET.replace(' ', chr(92) + ' ')}"
    )
    folders = [prompts, tmp_path, tmp_path / "none"]
    done = memory.erase(text=SECRET, folders=folders)
    assert done.files == (str(final / "final_memory_for_paper.md"),)
    assert {Path(item.path).name: item.reason for item in done.untouched} == {
        "plain.log": "it holds the text",
        "mine.txt": "it holds the text",
        "memory_old.jsonl": "it is protected against writing, and holds the text",
        "m.sqlite.original": "it is a copy of the memory, and holds the text",
        "final_memory_for_paper.md": "it holds the text with escaped characters",
        "none": "it is no folder",
    }
    assert (prompts / "plain.log").read_text() == told


def test_a_log_keeps_its_lines_and_a_writer_goes_on(memory: MemoryManager, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "memory_calls.jsonl"
    log.parent.mkdir()
    with log.open("ab", buffering=0) as appending:
        appending.write(f'{{"text": "{SECRET}"}}\n{{"text": "other"}}\n'.encode())
        length, number = log.stat().st_size, log.stat().st_ino
        memory.erase(text=SECRET)
        assert (log.stat().st_size, log.stat().st_ino) == (length, number)
        appending.write(b'{"text": "later"}\n')
    lines = log.read_text().splitlines()
    assert [line.replace(" ", "") for line in lines] == [
        '{"text":"[erased]"}', '{"text":"other"}', '{"text":"later"}'
    ]  # fmt: skip


OTHER = """
import sys
from taskweaver.memory.branched import MemoryConfig, MemoryManager
with MemoryManager(sys.argv[1], MemoryConfig(memory_log_enabled=False)) as memory:
    handle = memory["below"]
    for _ in sys.stdin:
        print([*handle.core.values()], [item.text for item in handle.records()], flush=True)
"""


def test_another_process_sees_the_erased_view(memory: MemoryManager) -> None:
    memory.mem_core_set("home", f"near {SECRET}")
    memory.mem_archival_write(SECRET)
    memory.fork("root", "below")
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(memory.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdin is not None
        assert other.stdout is not None

        def ask() -> str:
            print(file=other.stdin, flush=True)
            return other.stdout.readline().strip()

        assert ask() == f"['a faster solver', 'near {SECRET}'] ['{SECRET}']"
        assert memory.erase(text=SECRET).is_complete
        assert ask() == "['a faster solver', 'near [erased]'] []"
        other.stdin.close()
    assert other.returncode == 0


def test_a_reader_keeps_its_state_and_is_named(memory: MemoryManager, tmp_path: Path) -> None:
    memory.mem_archival_write(SECRET)
    with closing(sqlite3.connect(memory.path, isolation_level=None)) as reading:
        reading.execute("BEGIN")
        query = "SELECT text FROM archival WHERE text != ''"
        assert reading.execute(query).fetchall() == [(SECRET,)]
        done = memory.erase(text=SECRET)
        assert done.rows == {"archival": 1}
        assert [item.path for item in done.untouched] == [str(memory.path)]
        assert "another process reads it" in done.untouched[0].reason
        assert memory["root"].records() == []
        assert reading.execute(query).fetchall() == [(SECRET,)]
        reading.execute("COMMIT")
        assert reading.execute(query).fetchall() == []
    assert memory.erase(text=SECRET).is_complete
    assert holders(tmp_path) == []


KILLED = """
import os, signal, sys
from taskweaver.memory.branched import MemoryConfig, MemoryManager, erased_texts, erasure

erase_rows = erasure.erase_rows

def die(*given):
    if sys.argv[2] == "in the rows":
        erase_rows(*given)
    os.kill(os.getpid(), signal.SIGKILL)

places = {
    "in the rows": (erasure, "erase_rows"),
    "before the free pages": (erasure.Erasures, "_compact"),
    "in a log": (erased_texts.os, "fsync"),
}
memory = MemoryManager(sys.argv[1], MemoryConfig(memory_log_enabled=False))
setattr(*places[sys.argv[2]], die)
memory.erase(record_id=int(sys.argv[3]))
"""
PLACES = ("in the rows", "before the free pages", "in a log")


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_erasure_is_finished(memory: MemoryManager, tmp_path: Path, place: str) -> None:
    path = memory.path
    memory.close()
    with MemoryManager(path) as memory:
        record = memory.mem_archival_write(SECRET, branch_id="root")
        memory.mem_core_set("home", SECRET, branch_id="root")
    command = [sys.executable, "-c", KILLED, str(path), place, str(record)]
    done = subprocess.run(command, check=False, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert holders(tmp_path)
    with MemoryManager(path, QUIET) as memory:
        assert memory.verify().is_sound
        assert memory.erase(record_id=record).is_complete
        assert memory.verify().is_sound
    assert holders(tmp_path) == []
