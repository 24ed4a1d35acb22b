"""Files and exports of earlier formats get what they lack, and keep what they hold."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memories import QUIET, Open, run_sql

from taskweaver.memory.branched import InvalidUpdate, MemoryManager, StoreCorrupt
from taskweaver.memory.branched.repair import readable_rows, salvage
from taskweaver.memory.branched.storage.schema import (
    APPLICATION_ID,
    VERSION,
    build,
    former_triggers,
    search_index,
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
        for index in search_index(version).values():
            connection.execute(index)
        if version < 3:
            for trigger in former_triggers().values():
                connection.execute(trigger)
        for statement in ROWS:
            connection.execute(statement)
        if 3 <= version < 6:  # a later index keeps no text, and searches fill it
            connection.execute("INSERT INTO archival_fts (archival_fts) VALUES ('rebuild')")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
    return path


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_a_file_of_an_earlier_format_opens(tmp_path: Path, open_memory: Open, version: int) -> None:
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


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_a_damaged_file_of_an_earlier_format_is_salvaged(tmp_path: Path, version: int) -> None:
    tables, clock = readable_rows(file_of(version, tmp_path / "damaged.sqlite"))
    done = salvage(tables, clock, tmp_path / "saved.sqlite", fits=lambda _table, _row: "")
    assert done.saved["archival"] == 1
    with MemoryManager(tmp_path / "saved.sqlite") as memory:
        assert [item.text for item in memory["root"].records()] == ["threads pay off"]
        assert memory.verify().is_sound


def sign(file: Path, lines: list[Any]) -> None:
    """Write an export with a last line that fits."""
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    end = {"rows": len(lines), "sha256": hashlib.sha256(body).hexdigest()}
    file.write_bytes(body + json.dumps(end).encode() + b"\n")


def test_an_export_of_former_format(open_memory: Open, open_rooted: Open, tmp_path: Path) -> None:
    open_rooted().write_archival("root", "threads pay off")
    file = tmp_path / "out.jsonl"
    open_memory().export(file)
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()[:-1]]
    other = open_memory("other.sqlite")
    lines[-1]["row"]["is_deleted"] = 2
    sign(file, lines)
    with pytest.raises(InvalidUpdate, match="is_deleted"):
        other.import_(file)
    lines[0]["version"] = 1
    for name in ("is_deleted", "valid_from", "valid_to", "replaced_by"):
        del lines[-1]["row"][name]
    sign(file, lines)
    other.import_(file)
    assert [item.text for item in other["root"].records()] == ["threads pay off"]
    assert other.verify().is_sound


def test_a_memory_of_the_original_search_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    tables = ("branches", "core_kv", "core_meta", "events", "archival")
    run_sql(path, *(f"CREATE TABLE {table} (id)" for table in tables))
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match=r"original search.*sqlite3"):
        MemoryManager(path)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["m.sqlite"]


PLANTED = {
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON posts BEGIN DELETE FROM rounds; END",
    "a trigger of a known name": (
        "CREATE TRIGGER archival_added AFTER INSERT ON archival BEGIN DELETE FROM rounds; END"
    ),
    "a view": "CREATE VIEW v AS SELECT * FROM posts",
    "a table": "CREATE TABLE extra (x DEFAULT (randomblob(1000000000)))",
    "an index": "CREATE INDEX i ON posts (length(body))",
    "a virtual table": "CREATE VIRTUAL TABLE more USING fts5 (x)",
    "a column": "ALTER TABLE posts ADD COLUMN x TEXT AS (hex(body))",
    "a column with a default": "ALTER TABLE rounds ADD COLUMN x TEXT DEFAULT 1",
    "a branch of its own": "UPDATE branches SET parent_id = 1 WHERE id = 1",
    "a circle of branches": "UPDATE branches SET parent_id = 2 WHERE id = 1",
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_changed_schema_is_refused(memory: MemoryManager, planted: str) -> None:
    memory.close()
    run_sql(memory.path, PLANTED[planted])
    with pytest.raises(StoreCorrupt, match="has a schema that this program did not make"):
        MemoryManager(memory.path, QUIET)


def test_no_connection_trusts_a_schema(memory: MemoryManager) -> None:
    database = memory._parts.database
    for connection in (database._writing, database.reading):
        assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
        assert connection.execute("PRAGMA cell_size_check").fetchone() == (1,)


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_file_beside_it(memory: MemoryManager, tmp_path: Path, ending: str, kind: str) -> None:
    memory.close()
    mine = tmp_path / "mine.txt"
    mine.write_text("untouched")
    beside = Path(f"{memory.path}{ending}")
    if kind == "link":
        beside.symlink_to(mine)
    else:
        os.mkfifo(beside)
    with pytest.raises(StoreCorrupt, match="is a link or no ordinary file"):
        MemoryManager(memory.path, QUIET)
    assert mine.read_text() == "untouched"


def journal_naming(path: Path, victim: Path) -> None:
    """Write a rollback journal for a database, which names a file as its super-journal."""
    name = str(victim).encode()
    header = bytes.fromhex("d9d505f920a163d7") + b"\0\0\0\0" + bytes(4) + b"\0\0\0\2"
    header = header + (512).to_bytes(4) + (4096).to_bytes(4)
    record = (1 << 30).to_bytes(4) + name + len(name).to_bytes(4) + sum(name).to_bytes(4)
    journal = Path(f"{path}-journal")
    journal.write_bytes(header.ljust(512, b"\0") + record + bytes.fromhex("d9d505f920a163d7"))


def test_a_journal_cannot_have_a_file_deleted(tmp_path: Path) -> None:
    victim = tmp_path / "mine.txt"
    victim.write_text("a file of the user")
    path = tmp_path / "m.sqlite"
    run_sql(path, "CREATE TABLE t (x)")
    journal_naming(path, victim)
    with closing(sqlite3.connect(path)) as connection:  # what SQLite alone does
        connection.execute("SELECT * FROM t").fetchall()
    assert not victim.exists()
    victim.write_text("a file of the user")
    journal_naming(path, victim)
    with pytest.raises(StoreCorrupt, match="which SQLite would delete"):
        MemoryManager(path, QUIET)
    assert victim.read_text() == "a file of the user"
