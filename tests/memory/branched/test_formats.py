"""Files and exports of earlier formats get what they lack, and keep what they hold."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memories import Open
from patience import PATIENCE_S

from taskweaver.memory.branched import InvalidUpdate, MemoryConfig, MemoryManager, StoreCorrupt
from taskweaver.memory.branched.repair.salvage import readable_rows, salvage
from taskweaver.memory.branched.storage.schema import (
    APPLICATION_ID,
    VERSION,
    build,
    former_triggers,
)

QUIET = MemoryConfig(memory_log_enabled=False)
OPEN = """
import os, sys
from taskweaver.memory.branched import MemoryConfig, MemoryManager
path, *notes = sys.argv[1:]
note = next((note for note in notes if os.fork() == 0), "")
if note:
    with MemoryManager(path, MemoryConfig(memory_log_enabled=False)) as memory:
        memory.mem_recall_append({"content": note}, branch_id="root")
else:
    assert [os.wait()[1] for _ in notes] == [0] * len(notes)
"""
"""Processes that each open a file and add a note; they are forked before they open it."""
FORMER_INDEX = (
    "CREATE VIRTUAL TABLE archival_fts USING fts5 (\n"
    "    text, tags, content='archival', content_rowid='seq',"
    " tokenize=\"unicode61 tokenchars '_'\"\n)"
)
ROWS = (
    "INSERT INTO branches (name, fork_seq, created_at) VALUES ('root', 0, 1.0)",
    "INSERT INTO archival (seq, branch_id, record, text, text_hash, tags, meta, created_at)"
    " VALUES (1, 1, 1, 'threads pay off', 0, '[\"T\"]', '{}', 2.0)",
    "UPDATE clock SET seq = 1",
)


def file_of(version: int, path: Path) -> Path:
    """Make a file as an earlier version of the program wrote it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        build(connection, version)
        if version < 4:
            connection.execute(FORMER_INDEX)
        if version < 3:
            for trigger in former_triggers().values():
                connection.execute(trigger)
        for statement in ROWS:
            connection.execute(statement)
        if version == 3:
            connection.execute("INSERT INTO archival_fts (archival_fts) VALUES ('rebuild')")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
    return path


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_file_of_an_earlier_format_opens_and_is_found_in(
    tmp_path: Path, open_memory: Open, version: int
) -> None:
    file_of(version, tmp_path / "m.sqlite")
    for _ in range(2):
        memory = open_memory()
        assert memory["root"].records()[-1].text == "threads pay off"
        assert memory.mem_archival_search("threads", branch_id="root")[0]["match"] == "query"
        memory.write_archival("root", "written later")
        assert [row["text"] for row in memory.mem_archival_search("later")] == ["written later"]
        assert memory.verify().is_sound
        memory.close()
    with closing(sqlite3.connect(tmp_path / "m.sqlite")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        added = connection.execute("SELECT is_deleted, place FROM archival").fetchall()
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        assert triggers.fetchall() == []
    assert set(added) == {(0, "b1")}


def all_fit(_table: str, _row: object) -> str:
    return ""


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_damaged_file_of_an_earlier_format_is_salvaged(tmp_path: Path, version: int) -> None:
    tables, clock = readable_rows(file_of(version, tmp_path / "damaged.sqlite"))
    saved = salvage(tables, clock, tmp_path / "saved.sqlite", fits=all_fit).saved
    assert saved["archival"] == 1
    with MemoryManager(tmp_path / "saved.sqlite") as memory:
        assert [item.text for item in memory["root"].records()] == ["threads pay off"]
        assert memory.verify().is_sound


def sign(lines: list[Any]) -> bytes:
    """Return an export with a last line that fits."""
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    end = {"rows": len(lines), "sha256": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(end).encode() + b"\n"


def exported(memory: MemoryManager, change: Callable[[list[Any]], None]) -> Path:
    """Return an export of one record, changed and signed again."""
    memory.create_branch(None, branch_id="root")
    memory.write_archival("root", "threads pay off")
    file = memory.path.with_name("out.jsonl")
    memory.export(file)
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()[:-1]]
    change(lines)
    file.write_bytes(sign(lines))
    return file


def test_an_export_of_the_earlier_format_is_imported(open_memory: Open) -> None:
    def age(lines: list[Any]) -> None:
        lines[0]["version"] = 1
        for line in lines:
            if line.get("table") == "archival":
                del line["row"]["is_deleted"]

    file = exported(open_memory(), age)
    other = open_memory("other.sqlite")
    other.import_(file)
    assert [item.text for item in other["root"].records()] == ["threads pay off"]
    assert other.verify().is_sound


@pytest.mark.parametrize("value", [2, "1", None, 0.5])
def test_a_wrong_mark_of_deletion_is_refused(open_memory: Open, value: object) -> None:
    def spoil(lines: list[Any]) -> None:
        lines[-1]["row"]["is_deleted"] = value

    file = exported(open_memory(), spoil)
    with pytest.raises(InvalidUpdate, match="is_deleted"):
        open_memory("other.sqlite").import_(file)


def test_a_deletion_survives_export_backup_and_salvage(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory()
    memory.create_branch(None, branch_id="root")
    memory["root"].remember("kept")
    memory["root"].forget(memory["root"].remember("deleted"))
    memory.backup(tmp_path / "backup.sqlite")
    memory.export(tmp_path / "all.jsonl")
    open_memory("imported.sqlite").import_(tmp_path / "all.jsonl")
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes((tmp_path / "backup.sqlite").read_bytes())
    found = salvage(*readable_rows(copy), tmp_path / "salvaged.sqlite", fits=all_fit)
    assert not (found.unfit)
    assert not (found.lost)
    assert not (found.damaged)
    for name in ("backup.sqlite", "imported.sqlite", "salvaged.sqlite"):
        opened = open_memory(name)
        assert [record.text for record in opened["root"].records()] == ["kept"]
        assert opened.verify().is_sound


def former_write(connection: sqlite3.Connection, text: str) -> None:
    """Write a record as a process of format 3 does."""
    connection.execute("BEGIN IMMEDIATE")
    (seq,) = connection.execute("UPDATE clock SET seq = seq + 1 RETURNING seq").fetchone()
    connection.execute(
        "INSERT INTO archival (seq, branch_id, record, text, text_hash, tags, meta, created_at)"
        " VALUES (?, 1, ?, ?, 0, '[]', '{}', 3.0)",
        (seq, seq, text),
    )
    connection.execute(
        "INSERT INTO archival_fts (rowid, text, tags)"
        " SELECT seq, text, tags FROM archival WHERE seq = ?",
        (seq,),
    )
    connection.execute("COMMIT")


def test_a_process_of_the_former_format_writes_while_the_file_is_migrated(tmp_path: Path) -> None:
    path = file_of(3, tmp_path / "m.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as former:
        former.execute("PRAGMA journal_mode = WAL")
        former_write(former, "written before")
        with MemoryManager(path, QUIET) as memory:
            former_write(former, "written during")
            memory.write_archival("root", "written by the newer")
            former_write(former, "written afterwards")
            texts = [record.text for record in memory["root"].records()]
            assert texts == [
                "written afterwards", "written by the newer", "written during",
                "written before", "threads pay off",
            ]  # fmt: skip
            assert former.execute("SELECT count(*) FROM archival").fetchone() == (5,)
            assert not memory.verify().is_sound  # the index lacks a column of two records
            memory.collect_garbage()
            assert memory.verify().is_sound
            found = {record.text for record in memory["root"].search("written")}
            assert found == {*texts} - {"threads pay off"}


@pytest.mark.parametrize("version", [1, 4])
def test_three_processes_open_a_file_of_an_earlier_format_at_once(
    tmp_path: Path, version: int
) -> None:
    path = file_of(version, tmp_path / "m.sqlite")
    command = [sys.executable, "-c", OPEN, str(path), "note 0", "note 1", "note 2"]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    with MemoryManager(path, QUIET) as memory:
        assert {event.text for event in memory["root"].events()} == {"note 0", "note 1", "note 2"}
        assert [record.text for record in memory["root"].records()] == ["threads pay off"]
        assert memory.verify().is_sound


def test_a_memory_of_the_original_search_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        for table in ("branches", "core_kv", "core_meta", "events", "archival"):
            connection.execute(f"CREATE TABLE {table} (id)")
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match=r"original search.*sqlite3.*docs/migrating.md"):
        MemoryManager(path)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["m.sqlite"]
