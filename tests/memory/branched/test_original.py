"""A database in the schema of the original opens, and shows the same rows."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from original_files import SCHEMA

from taskweaver.memory.branched import MemoryConfig, MemoryManager, StoreCorrupt

ROWS = """
INSERT INTO branches VALUES ('r', NULL, 'root', 1), ('a', 'r', 'node-a', 2),
    ('b', 'r', 'node-b', 3),    ('lost', 'nobody', NULL, 4);
INSERT INTO core_kv VALUES ('r', 'goal', 'fast', 1.5), ('a', 'goal', 'faster', 5),
    ('r', 'late', 'x', 9);
INSERT INTO core_meta VALUES ('r', 'goal', 5, '2h', 1.5);
INSERT INTO events (branch_id, kind, text, tags, created_at, task_hint, memory_size) VALUES
    ('r', 'start', 'began', '["RECALL_EVENT"]', 1.6, 'draft', 10),
    ('a', 'step', 'naïve ☃', 'not json', 2.5, NULL, NULL),
    ('r', 'old', 'summed up in b', NULL, 1.7, NULL, NULL);
INSERT INTO archival (branch_id, text, tags, created_at) VALUES
    ('r', 'root record', '["T"]', 1.8), ('b', 'of b', '[]', 3.5), ('gone', 'orphan', '[]', 4);
INSERT INTO archival_fts (rowid, text, tags, branch_id) VALUES (1, 'root record', 'T', 'r');
INSERT INTO inherited_exclusions VALUES ('b', 3, 4);
INSERT INTO inherited_summaries (branch_id, summary_text, summarized_event_ids, kind, created_at)
    VALUES ('b', 'a summary', '[3]', 'old', 4);
"""


@pytest.fixture
def original(tmp_path: Path) -> Path:
    path = tmp_path / "memory.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA + ROWS)
    connection.close()
    return path


@pytest.mark.parametrize("columns", ["all", "without the later ones"])
def test_it_opens_and_shows_what_it_showed(original: Path, columns: str) -> None:
    if columns != "all":
        with sqlite3.connect(original) as connection:
            connection.execute("ALTER TABLE events DROP COLUMN task_hint")
            connection.execute("ALTER TABLE events DROP COLUMN memory_size")
        connection.close()
    for _ in range(2):  # migrated once, then simply opened
        with MemoryManager(original, MemoryConfig(memory_log_enabled=False)) as memory:
            assert [branch.id for branch in memory.branches()] == ["r", "a", "b", "lost", "gone"]
            assert memory.branch("node-a").id == "a"
            assert memory.mem_core_get(branch_id="a") == {"goal": "faster", "late": "x"}
            assert memory["r"].core.entries()["goal"].importance == 5
            assert {event.text for event in memory["a"].events()} == {
                "began", "naïve ☃", "summed up in b"
            }  # fmt: skip
            assert {event.text for event in memory["b"].events()} == {"began"}
            assert "[inherited_summary] a summary" in memory.render_for_prompt("b")
            assert "a summary" not in memory.render_for_prompt("a")
            assert [item.text for item in memory["gone"].records()] == ["orphan"]
            assert [item.text for item in memory["b"].records()] == ["of b", "root record"]
            assert memory.mem_archival_search("root", branch_id="a")[0]["tags"] == ["T"]
            assert memory.verify().is_sound
    with sqlite3.connect(f"{original}.original") as kept:
        assert kept.execute("SELECT count(*) FROM core_meta").fetchone() == (1,)
    kept.close()
    with MemoryManager(original, MemoryConfig(memory_log_enabled=False)) as memory:
        memory.fork("a", "a2")
        memory.set_core("a2", "x", "1")
        assert memory.get_core("a2", "goal") == "faster"


def test_a_migration_that_fails_leaves_the_file_as_it_was(original: Path) -> None:
    with sqlite3.connect(original) as connection:
        connection.execute("UPDATE core_meta SET importance = 'many'")
    connection.close()
    before = original.read_bytes()
    with pytest.raises(StoreCorrupt, match="original"):
        MemoryManager(original)
    with sqlite3.connect(original) as connection:
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    connection.close()
    assert "core_meta" in names
    assert "clock" not in names
    assert len(before) <= original.stat().st_size + 4096
