"""Migrations beside other processes, and migrations that are killed, lose no row."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from original_files import OriginalTree, make_file
from patience import PATIENCE_S
from test_formats import file_of

from taskweaver.memory.branched import MemoryConfig, MemoryManager
from taskweaver.memory.branched.migration.migration_report import migration_reports

QUIET = MemoryConfig(memory_log_enabled=False)
OPEN = """
import os, sys
from taskweaver.memory.branched import MemoryConfig, MemoryManager
path, *notes = sys.argv[1:]
note = next((note for note in notes if os.fork() == 0), "")
if note:
    with MemoryManager(path, MemoryConfig(memory_log_enabled=False)) as memory:
        memory.mem_recall_append({"content": note}, branch_id="root")
        os.write(1, f"{len(memory.branches())}\\n".encode())
else:
    assert [os.wait()[1] for _ in notes] == [0] * len(notes)
"""
"""Processes that each open a file and add a note; they are forked before they open it."""
KILLED = """
import os, signal, sys
from taskweaver.memory.branched import MemoryConfig, MemoryManager
from taskweaver.memory.branched.migration import kept_original
from taskweaver.memory.branched.migration import original
from taskweaver.memory.branched.storage import preparation
from taskweaver.memory.branched.migration.migration_report import MigrationReport

calls = 0

def dying(real, after, count=1):
    def call(*values, **named):
        global calls
        calls += 1
        if calls == count and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        found = real(*values, **named)
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    return call

match sys.argv[2]:
    case "in the copy":
        kept_original._place = dying(kept_original._place, False)
    case "after the copy":
        preparation.keep_original = dying(preparation.keep_original, True)
    case "between rows":
        original.insert_row = dying(original.insert_row, True, 60)
    case "before the commit":
        MigrationReport.save = dying(MigrationReport.save, True)
MemoryManager(sys.argv[1], MemoryConfig(memory_log_enabled=False))
"""


def make_tree(path: Path) -> OriginalTree:
    tree = OriginalTree(path, 7)
    tree.fill(levels=3, width=3, rows=150)
    return tree


def assert_whole(tree: OriginalTree) -> None:
    """Check that every event and record of a tree is shown where it was written."""
    with MemoryManager(tree.path, QUIET) as memory:
        assert memory.verify().is_sound
        for branch in tree.parents:
            events = {event.text for event in memory[branch].events()}
            assert {text for _, owner, _, text in tree.events if owner == branch} <= events
            records = {record.text for record in memory[branch].records()}
            assert {text for owner, text in tree.archival.values() if owner == branch} <= records


def test_three_processes_open_one_original_at_once(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "m.sqlite")
    command = [sys.executable, "-c", OPEN, str(tree.path), "note 0", "note 1", "note 2"]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE_S
    )
    assert done.stdout == f"{len(tree.parents)}\n" * 3
    assert_whole(tree)
    with MemoryManager(tree.path, QUIET) as memory:
        texts = {event.text for event in memory["root"].events()}
        assert {"note 0", "note 1", "note 2"} <= texts
    (report,) = migration_reports(tree.path)
    assert report.rows["events"] == len(tree.events)
    assert [path.name for path in tmp_path.glob("*.original*")].count("m.sqlite.original") == 1


@pytest.mark.parametrize(
    "place", ["in the copy", "after the copy", "between rows", "before the commit"]
)
def test_a_migration_that_is_killed_is_done_by_the_next_process(tmp_path: Path, place: str) -> None:
    tree = make_tree(tmp_path / "m.sqlite")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tree.path), place], check=False, timeout=PATIENCE_S
    )
    assert killed.returncode == -signal.SIGKILL
    assert_whole(tree)
    (report,) = migration_reports(tree.path)
    with closing(sqlite3.connect(tmp_path / report.original)) as kept:
        assert kept.execute("SELECT count(*) FROM events").fetchone() == (len(tree.events),)
        assert kept.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not [*tmp_path.glob("*.partial")]


def test_rows_that_are_only_in_the_log_are_migrated(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    make_file(path, "INSERT INTO branches VALUES ('r', NULL, NULL, 1)")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("INSERT INTO events (branch_id, kind, text) VALUES ('r', 'k', 'logged')")
        folder = tmp_path / "after a crash"
        folder.mkdir()
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", folder)
    assert b"logged" not in (folder / "m.sqlite").read_bytes()
    with MemoryManager(folder / "m.sqlite", QUIET) as memory:
        assert [event.text for event in memory["r"].events()] == ["logged"]
    with closing(sqlite3.connect(folder / "m.sqlite.original")) as kept:
        assert kept.execute("SELECT text FROM events").fetchall() == [("logged",)]


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
