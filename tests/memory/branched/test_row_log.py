"""The log of the rows: one line for each row that was committed, by any thread or process."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memories import Open
from patience import PATIENCE_S

from taskweaver.memory.branched import MemoryManager, RecordNotVisible

TABLES = ("core_kv", "events", "archival", "exclusions", "digests")


def lines(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "logs" / "memory_primitive.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def rows_of(file: Path) -> list[tuple[int, str, int]]:
    """Return number, table and branch of each row of a memory that belongs in the log."""
    with closing(sqlite3.connect(file)) as connection:
        return sorted(
            (seq, table, branch)
            for table in TABLES
            for seq, branch in connection.execute(f"SELECT seq, branch_id FROM {table}")
        )


def logged(folder: Path) -> list[tuple[int, str, int]]:
    return sorted((line["seq"], line["table"], line["row"]["branch_id"]) for line in lines(folder))


def test_a_line_names_operation_branch_node_and_phase(open_memory: Open, tmp_path: Path) -> None:
    with open_memory(memory_log_enabled=True) as memory:
        memory.create_branch(None, branch_id="root", live=True)
        memory.mem_node_fork("root", "n1")
        event = {"kind": "run_failed", "content": "oom", "node_id": "n1", "phase": "debug"}
        memory.mem_node_write("n1", core_updates={"k": "v"}, recall_event=event)
        memory.mem_core_del("k", branch_id="n1")
        id_ = memory.mem_archival_write("x" * 5000, branch_id="root")
        memory.mem_archival_update(id_, text="two", branch_id="n1")
        memory.mem_archival_delete(id_, branch_id="n1")
        memory.seal("n1")
    found = lines(tmp_path)
    assert [(line["seq"], line["op"], line["memory_type"]) for line in found] == [
        (1, "set_core", "core"),
        (2, "write_event", "recall"),
        (3, "core_delete", "core"),
        (4, "write_archival", "archival"),
        (5, "update_archival", "archival"),
        (6, "delete_archival", "archival"),
    ]
    assert {(line["layer"], line["file"]) for line in found} == {("primitive", "m.sqlite")}
    noted = found[1]
    assert (noted["branch_id"], noted["node_id"], noted["phase"]) == ("n1", "n1", "Phase 2: Debug")
    assert noted["row"]["kind"] == "run_failed"
    assert found[3]["row"]["text"] == "x" * 5000  # never cut


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
    text = (tmp_path / "logs" / "memory_primitive.jsonl").read_text()
    assert "undone" not in text
    assert "conversation" not in text


def test_secrets_are_masked(open_memory: Open, tmp_path: Path) -> None:
    with open_memory(memory_log_enabled=True) as memory:
        memory.create_branch(None, branch_id="root")
        memory.mem_core_set("db_password", "hunter2-hunter2", branch_id="root")
        memory.mem_archival_write("the key is sk-proj-abcdefghijklmnopqrst", branch_id="root")
    assert [line["row"].get("value", line["row"].get("text")) for line in lines(tmp_path)] == [
        "[[masked:secret]]",
        "the key is [[masked:secret]]",
    ]


def test_rows_of_other_threads_are_logged_inside_of_a_snapshot(
    open_memory: Open, tmp_path: Path
) -> None:
    with open_memory(memory_log_enabled=True) as memory:
        memory.create_branch(None, branch_id="root")
        with memory._parts.database.snapshot() as connection:
            connection.execute("SELECT seq FROM clock").fetchone()
            memory.mem_core_set("k", "v", branch_id="root")
            memory._parts.log.flush()
    assert [line["row"]["value"] for line in lines(tmp_path)] == ["v"]


def test_lines_of_several_processes_are_whole(memory: MemoryManager, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from taskweaver.memory.branched import MemoryManager\n"
        "with MemoryManager(sys.argv[1]) as memory:\n"
        "    memory.fork('root', sys.argv[2])\n"
        "    for n in range(60):\n"
        "        memory.mem_core_set('n', str(n), branch_id=sys.argv[2])\n"
        "        memory.write_archival(sys.argv[2], f'record {n}')\n"
    )
    memory.close()
    before = rows_of(memory.path)
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(memory.path), f"p{n}"])
        for n in range(3)
    ]
    assert [writer.wait(timeout=PATIENCE_S) for writer in writers] == [0, 0, 0]
    assert sorted([*before, *logged(tmp_path)]) == rows_of(memory.path)
