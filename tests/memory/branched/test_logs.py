"""The logs of operations and rows, the prompt logs, and the plans of the hot queries.

A log that cannot be written fails no write, no read and no close, and names what it lost.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from full_disks import largest_file
from memories import Open
from patience import PATIENCE_S

from taskweaver.memory.branched import MemoryConfig, MemoryManager, RecordNotVisible
from taskweaver.memory.branched.log_files import LogFolder
from taskweaver.memory.branched.protocol.audit import MemoryPromptLog
from taskweaver.memory.branched.tiers import search

ROWS = "logs/memory_primitive.jsonl"
TABLES = ("core_kv", "events", "archival", "exclusions", "digests")
_LIMIT = 64 << 20


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_call_is_a_line_in_all_and_in_its_layer(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory(
        memory_log_enabled=True, log_dir=tmp_path / "logs", memory_log_max_chars=50
    )
    memory.bind(memory.create_branch(None, branch_id="root"))
    memory.mem_core_set("k", "token=abcdefghijkl " + "x" * 100)
    for phase in ("draft", "2_baseline_tuning", "stage_x_summary"):
        memory.mem_recall_append({"content": "said", "phase": phase, "node_id": "root"})
    memory.apply_llm_memory_updates("root", {"core": {"a": "b"}, "core_get": ["a"]}, "n", "debug")
    memory.render_for_prompt("root", "draft")
    memory.check_memory_pressure("root")
    memory.close()
    everything = lines(tmp_path / "logs" / "memory_calls.jsonl")
    assert [(line["op"], line["layer"], line["memory_type"]) for line in everything] == [
        ("create_branch", "internal", "branch"), ("mem_core_set", "public_api", "core"),
        *[("mem_recall_append", "public_api", "recall")] * 3, ("llm_core_set", "llm", "llm_update"),
        ("llm_core_get", "llm", "llm_read"), ("apply_llm_memory_updates", "system", "llm_update"),
        ("render_for_prompt", "system", "prompt"),
        ("check_memory_pressure", "internal", "pressure"),
    ]  # fmt: skip
    keys = {"ts", "branch_id", "node_id", "phase", "run_id"}
    assert all(keys <= set(line) for line in everything)
    phases = [line["phase"] for line in everything[2:5]]
    assert phases == ["Phase 2: Draft Implementation", "stage_execution_2", "stage_summary"]
    preview = everything[1]["details"]["value_preview"]
    assert "abcdefghijkl" not in preview
    assert len(preview) == 50
    files = {*(tmp_path / "logs").glob("*.jsonl")} - {tmp_path / "logs" / "memory_calls.jsonl"}
    by_layer = [line for file in files - {tmp_path / ROWS} for line in lines(file)]
    assert sorted(map(str, by_layer)) == sorted(map(str, everything))


def test_each_part_of_a_write_to_a_node_is_a_line(open_rooted: Open, tmp_path: Path) -> None:
    memory = open_rooted(memory_log_enabled=True, log_dir=tmp_path)
    event = {"kind": "run_failed", "content": "out of memory", "phase": "debug", "tags": ["OOM"]}
    memory.mem_node_write(
        "root",
        core_updates={"flags": "-O3", "goal": {"value": "faster", "importance": 5}},
        recall_event=event,
        archival_records=[{"text": "use blocks", "tags": ["PERFORMANCE"]}],
    )
    memory.close()
    found = lines(tmp_path / "memory_calls.jsonl")[1:]
    assert [line["op"] for line in found] == [
        "mem_node_write", "mem_core_set", "mem_core_set", "mem_archival_write",
        "mem_recall_append",
    ]  # fmt: skip
    marks = {(line["branch_id"], line["node_id"], line["phase"]) for line in found}
    assert marks == {("root", "root", "Phase 2: Debug")}
    assert [line["details"] for line in found] == [
        {"core_updates": ["flags", "goal"], "recall_event": True, "archival_records": 1},
        {"key": "flags", "value_preview": "-O3", "value_chars": 3},
        {"key": "goal", "value_preview": "faster", "value_chars": 6, "importance": 5},
        {"record_id": "3", "tags": ["PERFORMANCE"], "text_preview": "use blocks", "text_chars": 10},
        {"kind": "run_failed", "summary_preview": "out of memory", "tags": ["OOM"]},
    ]


def test_each_operation_of_a_block_is_a_line(open_rooted: Open, tmp_path: Path) -> None:
    memory = open_rooted(memory_log_enabled=True, log_dir=tmp_path)
    block = {
        "mem_core_set": {"a": "1", "api_key": "hunter2-hunter2"},
        "archival": [{"text": "one", "tags": ["T"]}, {"text": "two"}],
        "recall": {"kind": "insight", "content": "said", "cause": "x"},
        "core_delete": ["a"],
        "core_get": ["a", "b"],
        "archival_search": {"query": "one", "k": 3, "tags": ["T"]},
        "consolidate": True,
    }
    memory.apply_llm_memory_updates("root", block, "n1", "draft", attempt=1)
    memory.apply_llm_memory_updates("root", block, "n1", "draft", attempt=1)
    memory.close()
    *found, whole, again = lines(tmp_path / "memory_calls.jsonl")[1:]
    operations = [line["op"].removeprefix("llm_") for line in found]
    assert operations == [
        "core_set", "core_set", "core_delete", "archival_write", "archival_write",
        "recall_append", "core_get", "core_get", "archival_search", "consolidate",
    ]  # fmt: skip
    assert {(line["node_id"], line["phase"]) for line in (*found, whole)} == {
        ("n1", "Phase 2: Draft Implementation")
    }
    details = {line["op"]: line["details"] for line in found}
    assert details["llm_recall_append"] == {
        "kind": "insight", "content": "said", "event_id": 6, "cause": "x",
    }  # fmt: skip
    assert details["llm_archival_search"] == {
        "query": "one", "k": 3, "tags_filter": ["T"], "results_count": 1, "record_ids": ["4"],
    }  # fmt: skip
    facts = whole["details"]
    assert facts["core_keys"] == ["a", "api_key"]
    assert (facts["archival_count"], facts["operations_count"]) == (2, len(operations))
    assert (facts["has_archival_search"], facts["has_recall_search"]) == (True, False)
    assert [entry["type"] for entry in facts["operations_log"]] == operations
    assert (again["op"], again["details"]["already_applied"]) == ("apply_llm_memory_updates", True)
    assert "hunter2" not in (tmp_path / "memory_calls.jsonl").read_text()


def test_what_a_prompt_was_shown_and_did_is_kept(memory: MemoryManager, tmp_path: Path) -> None:
    result = memory.render_for_prompt_with_log("a", "draft")
    memory["a"].note_injection(result, "draft")
    (kept,) = memory["a"].injections()
    assert (kept.task_hint, kept.chars) == ("draft", len(result.text))
    assert kept.shown["Core Memory"] == ["goal"]
    assert memory["a"].events() == []
    log = MemoryPromptLog(tmp_path / "prompt")
    log.injection(result, task_hint="draft", stage="s1", began=1.0)
    updates = {"core": {"k": "password: abcdefghijkl"}, "core_get": ["goal"]}
    log.operations(updates, memory.apply_llm_memory_updates("a", updates), label="coding")
    (injected,) = lines(tmp_path / "prompt" / "memory_injections.jsonl")
    assert injected["shown"]["Core Memory"] == ["goal"]
    counts = [injected[f"{tier}_count"] for tier in ("core", "recall", "archival")]
    assert counts == [1, 0, 0]
    timing = injected["timing"]
    assert timing["end_timestamp"] - timing["start_timestamp"] > timing["start_timestamp"] == 1.0
    (done,) = lines(tmp_path / "prompt" / "memory_operations.jsonl")
    assert done["has_read_results"]
    assert [entry["type"] for entry in done["operations"]] == ["core_set", "core_get"]
    assert (done["operations_count"], done["counter"], injected["counter"]) == (2, 1, 1)
    assert all(entry["timestamp"] <= done["timestamp"] for entry in done["operations"])
    assert done["read_results"] == {"core_get": {"goal": "a faster solver"}}
    assert "abcdefghijkl" not in json.dumps(done)


def test_hot_queries_use_indexes(memory: MemoryManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is looked through whole, and nothing that is visible is sorted."""
    for n in range(50):
        memory.write_event("a", "k", f"event {n}")
        memory.write_archival("a", f"record {n} of threads", ["T"])
        memory.set_core("a", f"k{n}", "v")
    monkeypatch.setattr(search, "_COMMON", 20)  # `record` and `threads` are common, `7` is rare
    memory.fork("a", "below")
    connection = memory._parts.database.reading
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    memory.render_for_prompt("a", "draft", task="threads")
    memory.mem_archival_search("record threads 7", tags=["T"], branch_id="below")
    memory.mem_archival_search("", tags=["T"], branch_id="below")
    memory.mem_node_read("below")
    memory.mem_recall_search("event", branch_id="a")
    memory.mem_core_get(["k1"], branch_id="a")
    connection.set_trace_callback(None)
    ours = (query for query in seen if not re.search("_(words|fts)_", query))  # not the index's own
    queries = {query for query in ours if query.lstrip().startswith(("SELECT", "WITH"))}
    assert len(queries) > 12
    assert all(any(part in query for query in queries) for part in ("bm25", "marks :", "repeats"))
    small = ("VIRTUAL TABLE", "line", "(subquery", "json_each", "clock")
    for query in queries:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
        scans = [step for step in plan if step.startswith("SCAN")]
        whole = [step for step in scans if not any(word in step for word in small)]
        assert not whole, f"{query}\n{plan}"
        sorts = [step for step in plan if "TEMP B-TREE" in step and "line" not in query]
        assert not sorts, f"{query}\n{plan}"


def rows_of(file: Path) -> list[tuple[int, str, int]]:
    """Return number, table and branch of each row of a memory that belongs in the log."""
    with closing(sqlite3.connect(file)) as connection:
        return sorted(
            (seq, table, branch)
            for table in TABLES
            for seq, branch in connection.execute(f"SELECT seq, branch_id FROM {table}")
        )


def logged(folder: Path) -> list[tuple[int, str, int]]:
    return sorted(
        (line["seq"], line["table"], line["row"]["branch_id"]) for line in lines(folder / ROWS)
    )


def test_the_line_of_a_row_names_where_it_is_from(open_memory: Open, tmp_path: Path) -> None:
    with open_memory(memory_log_enabled=True) as memory:
        memory.create_branch(None, branch_id="root", live=True)
        memory.mem_node_fork("root", "n1")
        event = {"kind": "run_failed", "content": "oom", "node_id": "n1", "phase": "debug"}
        memory.mem_node_write("n1", core_updates={"k": "v"}, recall_event=event)
        memory.mem_core_del("k", branch_id="n1")
        id_ = memory.mem_archival_write("x" * 5000, branch_id="root")
        memory.mem_archival_update(id_, text="two", branch_id="n1")
        memory.mem_archival_delete(id_, branch_id="n1")
        memory.mem_core_set("db_password", "hunter2-hunter2", branch_id="n1")
        memory.seal("n1")
    found = lines(tmp_path / ROWS)
    assert [(line["seq"], line["op"], line["memory_type"]) for line in found] == [
        (1, "set_core", "core"), (2, "write_event", "recall"), (3, "core_delete", "core"),
        (4, "write_archival", "archival"), (5, "update_archival", "archival"),
        (6, "delete_archival", "archival"), (7, "set_core", "core"),
    ]  # fmt: skip
    assert {(line["layer"], line["file"]) for line in found} == {("primitive", "m.sqlite")}
    noted = found[1]
    assert (noted["branch_id"], noted["node_id"], noted["phase"]) == ("n1", "n1", "Phase 2: Debug")
    assert noted["row"]["kind"] == "run_failed"
    assert found[3]["row"]["text"] == "x" * 5000  # never cut
    assert found[6]["row"]["value"] == "[[masked:secret]]"


def test_an_import_is_logged_and_a_refused_write_is_not(open_memory: Open, tmp_path: Path) -> None:
    with open_memory("other.sqlite", memory_log_enabled=False) as other:
        other.create_branch(None, branch_id="there")
        for n in range(600):
            other.mem_archival_write(f"record {n}", branch_id="there")
        other.turns.start_round("there", "r", "said in a conversation")
        other.export(tmp_path / "there.jsonl")
    with open_memory(memory_log_enabled=True) as memory:
        memory.create_branch(None, branch_id="root")
        memory.import_(tmp_path / "there.jsonl")
        block = {"core": {"undone": "x"}, "archival_update": [{"id": 9999, "text": "y"}]}
        with pytest.raises(RecordNotVisible):
            memory.apply_llm_memory_updates("root", block)
        memory.mem_core_set("k", "v", branch_id="root")
        for n in range(60):
            memory.write_event("root", "step", f"event {n}")
        memory["root"].consolidate()
    assert logged(tmp_path) == rows_of(tmp_path / "m.sqlite")
    text = (tmp_path / ROWS).read_text()
    assert "undone" not in text
    assert "conversation" not in text


WRITER = """
import sys
from taskweaver.memory.branched import MemoryManager
with MemoryManager(sys.argv[1]) as memory:
    memory.fork('root', sys.argv[2])
    for n in range(60):
        memory.mem_core_set('n', str(n), branch_id=sys.argv[2])
        memory.write_archival(sys.argv[2], f'record {n}')
"""


def test_lines_of_several_processes_are_whole(memory: MemoryManager, tmp_path: Path) -> None:
    memory.close()
    before = rows_of(memory.path)
    command = [sys.executable, "-c", WRITER, str(memory.path)]
    writers = [subprocess.Popen([*command, f"p{n}"]) for n in range(3)]
    assert [writer.wait(timeout=PATIENCE_S) for writer in writers] == [0, 0, 0]
    assert sorted([*before, *logged(tmp_path)]) == rows_of(memory.path)


def open_logged(folder: Path, logs: Path) -> MemoryManager:
    config = MemoryConfig(log_dir=logs, synchronous="NORMAL")
    return MemoryManager(folder / "m.sqlite", config)


def readable(path: Path, *, since: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Return the lines of a log, and how many of them are torn."""
    with path.open("rb") as file:
        file.seek(since)
        texts = [text for text in file.read().split(b"\n") if text]
    whole = [text for text in texts if text.startswith(b"{") and text.endswith(b"}")]
    return [json.loads(text) for text in whole], len(texts) - len(whole)


@contextmanager
def full_disk(logs: Path, size: int) -> Iterator[None]:
    """Let the files in a folder grow by little, and the database by as much as it needs."""
    logs.mkdir()
    for layer in ("calls", "primitive", "public_api"):
        (logs / f"memory_{layer}.jsonl").touch()
        os.truncate(logs / f"memory_{layer}.jsonl", size)
    with largest_file(_LIMIT):
        yield


def test_a_full_disk_of_logs_is_no_fault(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logs, size = tmp_path / "logs", _LIMIT - 5000
    with open_logged(tmp_path, logs) as memory:
        with caplog.at_level(logging.WARNING), full_disk(logs, size):
            memory.bind(memory.create_branch(None, branch_id="root"))
            for n in range(500):
                memory.mem_archival_write(f"record {n}")
                if n % 100 == 0:
                    memory.mem_archival_search("record")
                    memory.render_for_prompt("root")
        assert len(memory["root"].records()) == 500
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert str(logs) in caplog.text
        memory.mem_core_set("k", "v")
    calls, torn = readable(logs / "memory_calls.jsonl", since=size)
    assert torn == 1  # the line that the full disk cut off, and no other
    (lost,) = [line for line in calls if line["op"] == "log_lines_lost"]
    assert lost["details"]["reason"] == "File too large"
    written = [line for line in calls if line["op"] != "log_lines_lost"]
    expected = 1 + 500 + 5 + 5 + 1
    assert len(written) + lost["details"]["count"] == expected
    assert written[-1]["op"] == "mem_core_set"
    rows, torn = readable(logs / "memory_primitive.jsonl", since=size)
    assert torn == 1
    (lost,) = [line for line in rows if line["op"] == "log_lines_lost"]
    assert len(rows) - 1 + lost["details"]["count"] == 501
    assert rows[-1]["op"] == "set_core"


@pytest.mark.parametrize("put_in_place", [None, Path.mkdir, os.mkfifo])
def test_logs_that_cannot_be_made_fail_nothing(
    put_in_place: Callable[[Path], None] | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = tmp_path / "logs"
    if put_in_place is None:
        logs.write_text("no folder")
    else:
        logs.mkdir()
        for layer in ("calls", "primitive", "public_api", "internal", "system"):
            put_in_place(logs / f"memory_{layer}.jsonl")
    memory = open_logged(tmp_path, logs)
    memory.bind(memory.create_branch(None, branch_id="root"))
    for n in range(450):
        memory.mem_core_set(f"k{n % 7}", str(n))
        assert memory.mem_core_get([f"k{n % 7}"]) == {f"k{n % 7}": str(n)}
    memory.close()
    assert not (tmp_path / "m.sqlite-wal").exists()  # the last connection is closed
    assert [record.levelname for record in caplog.records].count("WARNING") == 1


def test_a_line_that_another_process_left_torn_spoils_no_other(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(b'{"n": 1}\n{"n": ')
    assert folder.append("a.jsonl", ['{"n": 3}', '{"n": 4}']) == 2
    found, torn = readable(tmp_path / "a.jsonl")
    assert ([line["n"] for line in found], torn) == ([1, 3, 4], 1)
    folder.append("new.jsonl", ["{}"])
    assert (tmp_path / "new.jsonl").stat().st_mode & 0o777 == 0o600
