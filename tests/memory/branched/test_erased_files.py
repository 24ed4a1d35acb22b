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
PLACES = ("before the rows", "in the rows", "before the free pages", "in a log")


@pytest.mark.parametrize("place", PLACES)
def test_an_erasure_that_was_killed_is_finished_by_the_next(
    memory: MemoryManager, tmp_path: Path, place: str
) -> None:
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
