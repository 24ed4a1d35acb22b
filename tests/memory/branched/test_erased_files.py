"""An erasure reaches the files beside a memory and other processes, and survives a kill."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from memories import Open
from patience import PATIENCE_S

from taskweaver.memory.branched import MemoryConfig, MemoryManager

QUIET = MemoryConfig(memory_log_enabled=False)
SECRET = "Alice lives at 12 Elm Street, Zürich"
ORIGINAL = """
CREATE TABLE branches (id TEXT PRIMARY KEY, parent_id TEXT, node_uid TEXT, created_at REAL);
CREATE TABLE core_kv (branch_id TEXT, key TEXT, value TEXT, updated_at REAL);
CREATE TABLE core_meta (branch_id TEXT, key TEXT, importance INTEGER);
CREATE TABLE events (id INTEGER PRIMARY KEY, branch_id TEXT, kind TEXT, text TEXT, tags TEXT,
    created_at REAL);
CREATE TABLE archival (id INTEGER PRIMARY KEY, branch_id TEXT, text TEXT, tags TEXT,
    created_at REAL);
CREATE VIRTUAL TABLE archival_fts USING fts5 (text, tags, branch_id);
CREATE TRIGGER t AFTER UPDATE ON archival BEGIN DELETE FROM branches; END;
INSERT INTO branches VALUES ('r', NULL, NULL, 1);
INSERT INTO core_kv VALUES ('r', 'threads', '8', 1), ('r', 'depth', '8', 1);
"""


def holders(folder: Path, text: str = SECRET) -> list[str]:
    """Return the files that hold a text."""
    forms = [text.encode(), text.encode("ascii", "backslashreplace").replace(b"\\x", b"\\u00")]
    return [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]


@pytest.fixture
def memory(open_memory: Open) -> MemoryManager:
    made = open_memory()
    made.create_branch(None, branch_id="root")
    made.bind("root")
    return made


@pytest.fixture
def original(memory: MemoryManager) -> Path:
    """A database of the original search, as an earlier version kept it beside a memory."""
    path = Path(f"{memory.path}.original")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(ORIGINAL)
        connection.execute("INSERT INTO events VALUES (1, 'r', 'k', ?, NULL, 3)", (SECRET,))
        connection.commit()
    return path


def test_the_copy_of_the_original_is_cleaned(
    memory: MemoryManager, original: Path, tmp_path: Path
) -> None:
    memory.mem_core_set("threads", "8")
    with closing(sqlite3.connect(original)) as connection:
        long = SECRET + " and more" * 2000
        connection.execute("INSERT INTO archival VALUES (1, 'r', ?, '[]', 2)", (long,))
        connection.execute("INSERT INTO archival_fts VALUES (?, '', 'r')", (SECRET,))
        connection.commit()
    done = memory.erase(text=SECRET)
    assert done.files == (str(original),)
    assert done.is_complete
    memory.erase(key="threads")
    assert memory.erase(text=SECRET).files == ()
    assert holders(tmp_path) == []
    with closing(sqlite3.connect(original)) as kept:
        assert kept.execute("SELECT text FROM events").fetchall() == [("[erased]",)]
        assert kept.execute("SELECT key, value FROM core_kv").fetchall() == [
            ("threads", "[erased]"), ("depth", "8")
        ]  # fmt: skip
        assert kept.execute("SELECT count(*) FROM branches").fetchone() == (1,)
    assert not Path(f"{original}.erasing").exists()


def test_a_hard_link_to_the_original_keeps_its_bytes_and_is_named(
    memory: MemoryManager, original: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    os.link(original, saved)
    before = saved.read_bytes()
    done = memory.erase(text=SECRET)
    again = memory.erase(text=SECRET)
    (left,) = done.untouched
    assert (left.path, "hard links" in left.reason) == (str(original), True)
    assert saved.read_bytes() == before
    assert again.is_complete
    assert holders(tmp_path) == ["saved"]


def test_a_hard_link_to_a_log_is_the_same_log(memory: MemoryManager, tmp_path: Path) -> None:
    log = tmp_path / "memory_calls.jsonl"
    log.write_text(f'{{"text": "{SECRET}"}}\n')
    os.link(log, tmp_path / "linked")
    assert memory.erase(text=SECRET).is_complete
    assert holders(tmp_path) == []


def test_lines_that_wait_in_another_handle_do_not_bring_it_back(
    open_memory: Open, tmp_path: Path
) -> None:
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


def test_a_protected_file_a_link_and_a_database_are_left_and_named(
    memory: MemoryManager, tmp_path: Path
) -> None:
    logs, elsewhere = tmp_path / "prompts", tmp_path / "elsewhere"
    logs.mkdir()
    elsewhere.mkdir()
    protected, link, other = logs / "old.log", logs / "link.log", logs / "other.sqlite"
    protected.write_text(f"told: {SECRET}")
    protected.chmod(0o444)
    (elsewhere / "mine.txt").write_text(SECRET)
    link.symlink_to(elsewhere / "mine.txt")
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (?)", (SECRET,))
        connection.commit()
    os.mkfifo(logs / "pipe")
    (logs / "plain.log").write_text(f"{SECRET}\nkept")
    done = memory.erase(text=SECRET, folders=[logs, tmp_path / "none"])
    assert done.files == (str(logs / "plain.log"),)
    assert {Path(item.path).name: item.reason for item in done.untouched} == {
        "old.log": "it is protected against writing, and holds the text",
        "other.sqlite": "it is another database, and holds the text",
        "none": "it is no folder",
    }
    assert (logs / "plain.log").read_text().split() == ["[erased]", "kept"]
    assert (elsewhere / "mine.txt").read_text() == SECRET


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


@pytest.mark.parametrize("times", [1, 12])
def test_a_short_event_is_erased_from_the_digests_in_the_logs(tmp_path: Path, times: int) -> None:
    config = MemoryConfig(recall_max_events=2, synchronous="NORMAL")
    with MemoryManager(tmp_path / "m.sqlite", config) as memory:
        memory.create_branch(None, branch_id="root")
        root = memory["root"]
        ids = [root.append({"kind": "note", "content": "PIN  47 ö"}) for _ in range(times)]
        for number in range(4):
            root.append({"kind": "note", "content": f"another event, {number}"})
            root.consolidate(keep=1)
        assert "PIN 47 ö" in root.digest().text  # type: ignore[union-attr]
        memory.erase(event_id=ids[0])
    found = [
        path.name for path in tmp_path.rglob("*") if path.is_file() and b"PIN" in path.read_bytes()
    ]
    assert found == []
    assert "another event" in (tmp_path / "logs" / "memory_primitive.jsonl").read_text()


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

        assert ask() == str([f"near {SECRET}"]) + " " + str([SECRET])
        assert memory.erase(text=SECRET).is_complete
        assert ask() == "['near [erased]'] []"
        other.stdin.close()
    assert other.returncode == 0


def test_a_reader_keeps_its_state_and_is_named_until_it_ends(
    memory: MemoryManager, tmp_path: Path
) -> None:
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
from taskweaver.memory.branched.erasure import erased_files
from taskweaver.memory.branched.erasure import erasure
from taskweaver.memory.branched import MemoryConfig, MemoryManager

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

places = {
    "before the rows": (erasure.Erasures, "_rows"),
    "in the rows": (erasure, "erase_rows"),
    "before the free pages": (erasure.Erasures, "_compact"),
    "in a log": (erased_files.os, "fsync"),
    "in the original": (erased_files, "_replace"),
}
memory = MemoryManager(sys.argv[1], MemoryConfig(memory_log_enabled=False))
owner, name = places[sys.argv[2]]
if sys.argv[2] == "in the rows":
    real = erasure.erase_rows
    def die(connection, *rest):
        real(connection, *rest)
        os.kill(os.getpid(), signal.SIGKILL)
setattr(owner, name, die)
memory.erase(record_id=int(sys.argv[3]))
"""
PLACES = (
    "before the rows", "in the rows", "before the free pages", "in a log", "in the original"
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_an_erasure_that_was_killed_is_finished_by_the_next(
    memory: MemoryManager, original: Path, tmp_path: Path, place: str
) -> None:
    path = memory.path
    memory.close()
    assert original.exists()
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


def test_writers_go_on_while_a_text_is_erased(memory: MemoryManager) -> None:
    for number in range(200):
        memory.mem_archival_write(f"{number}: {SECRET}")
    is_over = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        while not is_over.is_set():
            written += 1
            memory.mem_recall_append({"kind": "k", "content": f"step {written}"})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        done = memory.erase(text=SECRET)
    finally:
        is_over.set()
        writer.join()
    assert done.rows["archival"] == 200
    seen = {event.text for event in memory["root"].events()}
    assert seen >= {f"step {number}" for number in range(1, written + 1)}
    assert memory.verify().is_sound
