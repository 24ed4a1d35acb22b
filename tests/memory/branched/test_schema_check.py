"""Files with a schema, or files beside them, that this program did not make are not opened."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from memories import Open

from taskweaver.memory.branched import MemoryConfig, MemoryManager, StoreCorrupt

QUIET = MemoryConfig(memory_log_enabled=False)

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


def run(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize("planted", PLANTED)
def test_a_changed_schema_is_refused(memory: MemoryManager, planted: str) -> None:
    memory.close()
    run(memory.path, PLANTED[planted])
    with pytest.raises(StoreCorrupt, match="has a schema that this program did not make"):
        MemoryManager(memory.path, QUIET)


def test_a_view_in_place_of_a_table_is_refused(memory: MemoryManager) -> None:
    memory.close()
    run(
        memory.path,
        "ALTER TABLE compressions RENAME TO hidden",
        "CREATE VIEW compressions AS SELECT * FROM hidden",
    )
    with pytest.raises(StoreCorrupt, match="the view 'compressions' is not"):
        MemoryManager(memory.path, QUIET)


def test_no_connection_trusts_a_schema(memory: MemoryManager) -> None:
    database = memory._parts.database
    for connection in (database._writing, database.reading):
        assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
        assert connection.execute("PRAGMA cell_size_check").fetchone() == (1,)


def test_the_index_follows_what_is_removed(open_memory: Open) -> None:
    memory = open_memory()
    memory.create_branch(None, branch_id="root")
    memory.fork("root", "gone")
    memory.write_archival("gone", "words that nothing sees")
    memory.prune("gone")
    memory.collect_garbage()
    assert memory.verify().is_sound


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_file_beside_it_that_leads_elsewhere_is_refused(
    memory: MemoryManager, tmp_path: Path, ending: str, kind: str
) -> None:
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
    run(path, "CREATE TABLE t (x)")
    journal_naming(path, victim)
    with closing(sqlite3.connect(path)) as connection:  # what SQLite alone does
        connection.execute("SELECT * FROM t").fetchall()
    assert not victim.exists()
    victim.write_text("a file of the user")
    journal_naming(path, victim)
    with pytest.raises(StoreCorrupt, match="which SQLite would delete"):
        MemoryManager(path, QUIET)
    assert victim.read_text() == "a file of the user"
