"""The file: many writers, sudden deaths, bad files, other versions."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from memories import Open
from patience import PATIENCE_S

from taskweaver.memory.branched import (
    BranchedMemory,
    InvalidUpdate,
    MemoryConfig,
    MemoryManager,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreTooNew,
    StoreUnwritable,
)
from taskweaver.memory.branched.storage import connections
from taskweaver.memory.branched.storage.schema import APPLICATION_ID, VERSION

QUIET = MemoryConfig(memory_log_enabled=False)


WRITERS = """
import os, sys
from pathlib import Path
from taskweaver.memory.branched import MemoryConfig, MemoryManager
path, *names = sys.argv[1:]
name = next((name for name in names if os.fork() == 0), "")
if name:
    with MemoryManager(Path(path), MemoryConfig(memory_log_enabled=False)) as memory:
        for n in range(25):
            os.write(1, f"{memory.write_archival(name, f'{name} {n}')}\\n".encode())
else:
    assert [os.wait()[1] for _ in names] == [0] * len(names)
"""
"""Processes that each write on a branch; they are forked before they open the memory."""


def test_eight_threads_lose_nothing(memory: MemoryManager) -> None:
    names = [memory.fork("root", f"t{n}") for n in range(8)]

    def work(name: str) -> list[int]:
        seqs = []
        for n in range(40):
            seqs.append(memory.write_event(name, "k", f"event {n}"))
            memory.mem_core_set("n", str(n), branch_id=name)
            assert memory.get_core(name, "n") == str(n)
            memory.render_for_prompt(name)
        return seqs

    with ThreadPoolExecutor(8) as pool:
        written = [seq for seqs in pool.map(work, names) for seq in seqs]
    assert len(set(written)) == 320
    for name in names:
        assert sum(event.count for event in memory[name].events()) == 40
    assert memory.verify().is_sound


def test_eight_processes_lose_nothing(memory: MemoryManager) -> None:
    names = [memory.fork("root", f"p{n}") for n in range(8)]
    command = [sys.executable, "-c", WRITERS, str(memory.path), *names]
    ids = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert len(set(ids)) == 200
    for name in names:
        assert len(memory[name].records()) == 25
        assert memory.mem_archival_search(name, branch_id=name)[0]["match"] == "query"
    assert memory.verify().is_sound


KILLED = """
import sys
from taskweaver.memory.branched import MemoryConfig, MemoryManager
with MemoryManager(sys.argv[1], MemoryConfig(memory_log_enabled=False)) as memory:
    branch = sys.argv[2]
    memory.fork("root", branch)
    for n in range(1_000_000):
        id_ = memory.write_archival(branch, f"record {n} of {branch}", ["T"])
        memory.write_event(branch, "k", f"event {n}")
        print(n, id_, flush=True)
"""


def test_a_killed_writer_keeps_every_acknowledged_write(memory: MemoryManager) -> None:
    for round_ in range(4):
        name = f"killed{round_}"
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(memory.path), name],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(3 + 7 * round_):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        told = [line.split() for line in process.stdout.read().splitlines() if line.count(" ") == 1]
        process.wait()
        process.stdout.close()
        kept = {record.id: record.text for record in memory[name].records()}
        for n, id_ in told:
            assert kept[int(id_)] == f"record {n} of {name}"
        assert sum(event.count for event in memory[name].events()) >= len(told)
        assert memory.verify().is_sound
        memory.write_event(name, "k", "life goes on")


def test_one_failing_command_of_a_group_takes_nothing_of_the_others(memory: MemoryManager) -> None:
    """Writers that wait together are committed together, and fail alone."""
    database = memory._parts.database
    results: list[object] = []

    def write(n: int) -> None:
        try:
            text = "\0" if n % 3 == 0 else f"text {n}"
            results.append(memory.write_archival("a", text))
        except InvalidUpdate as error:
            results.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(12)]
    with database._lock:  # nobody can commit until all are waiting
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sum(isinstance(result, str) for result in results) == 8
    assert len(memory["a"].records()) == 8


def test_a_file_held_by_another_process_is_said_to_be_busy(
    memory: MemoryManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_BUSY_TIMEOUT_S", 0.05)
    holder = sqlite3.connect(memory.path, isolation_level=None)
    with MemoryManager(memory.path, QUIET) as second:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="another process"):
            second["root"].core["x"] = "1"
        assert second.get_core("root", "goal") == "a faster solver"
        holder.execute("ROLLBACK")
        second["root"].core["x"] = "1"
    holder.close()


def test_a_full_disk_fails_the_write_and_leaves_the_file_whole(memory: MemoryManager) -> None:
    connection = memory._parts.database._writing
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    def fill() -> None:
        for n in range(1000):
            memory.write_archival("a", f"{n} " * 500)

    with pytest.raises(StoreUnwritable, match="full"):
        fill()
    kept = len(memory["a"].records())
    connection.execute("PRAGMA max_page_count = 1000000")
    memory.write_archival("a", "room again")
    assert len(memory["a"].records()) == kept + 1
    assert memory.verify().is_sound


def test_files_that_are_no_memory_are_refused_and_stay_as_they_are(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    noise = tmp_path / "noise.db"
    noise.write_bytes(b"no database at all" * 100)
    for path in (other, noise):
        before = path.read_bytes()
        with pytest.raises(StoreCorrupt):
            MemoryManager(path, QUIET)
        assert path.read_bytes() == before


def test_a_truncated_file_is_told_and_not_made_worse(memory: MemoryManager, tmp_path: Path) -> None:
    for n in range(200):
        memory.write_archival("a", f"text {n} " * 50)
    memory.close()
    data = memory.path.read_bytes()
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(data[: len(data) // 2])
    try:
        with MemoryManager(broken, QUIET) as opened:
            problems = opened.verify().problems
    except StoreCorrupt as error:
        problems = (str(error),)
    assert problems


def test_a_newer_file_is_refused(memory: MemoryManager) -> None:
    memory.close()
    with sqlite3.connect(memory.path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(StoreTooNew, match="Update the program"):
        MemoryManager(memory.path, QUIET)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for below in ("m.sqlite", "folder/m.sqlite"):
        with pytest.raises(StoreUnwritable, match=r"file is a file and no folder\. Choose a file"):
            MemoryManager(tmp_path / "file" / below, QUIET)
    (tmp_path / "folder.sqlite").mkdir()
    with pytest.raises(StoreUnwritable):
        MemoryManager(tmp_path / "folder.sqlite", QUIET)


def test_a_closed_memory_says_so(memory: MemoryManager) -> None:
    memory.close()
    memory.close()
    for call in (lambda: memory["a"].core.entries(), lambda: memory.mem_core_set("x", "1")):
        with pytest.raises(StoreClosed):
            call()


def test_a_backup_is_a_memory_too(memory: MemoryManager, tmp_path: Path) -> None:
    memory.backup(tmp_path / "copy.sqlite")
    memory.mem_core_set("late", "1")
    with MemoryManager(tmp_path / "copy.sqlite", QUIET) as copy:
        assert set(copy["a"].core.entries()) == {"goal"}
        assert copy.verify().is_sound
    with pytest.raises(StoreUnwritable):
        memory.backup(tmp_path / "no" / "folder.sqlite")


def test_the_file_is_marked_as_ours(memory: MemoryManager) -> None:
    reading = memory._parts.database.reading
    assert reading.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    assert reading.execute("PRAGMA user_version").fetchone()[0] == VERSION
    assert memory._parts.database._writing.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_damage_between_rows_is_found(memory: MemoryManager) -> None:
    memory.write_archival("a", "x")
    memory._parts.database.write(
        lambda writer: writer.connection.execute("UPDATE clock SET seq = 0")
    )
    problems = memory.verify().problems
    assert any("newer than the clock" in problem for problem in problems)


def test_branches_travel_between_files(memory: MemoryManager, open_memory: Open) -> None:
    memory.write_event("a", "k", "said")
    memory.write_event("a", "k", "said")
    record = memory.write_archival("root", "text", ["T"])
    memory.fork("root", "c")
    memory.mem_archival_update(record, text="overlaid", branch_id="c")
    memory.mem_core_del("goal", branch_id="c")
    file = memory.path.with_name("out.jsonl")
    assert memory.export(file) == 6
    other = open_memory("other.sqlite")
    other.create_branch(None, branch_id="own")
    other.set_core("own", "here", "before")
    assert other.import_(file) == ["root", "a", "b", "c"]
    for branch in ("root", "a", "b", "c"):
        assert other.render_for_prompt(branch).replace("#", "") != ""
        assert [item.text for item in other[branch].records()] == [
            item.text for item in memory[branch].records()
        ]
        assert other.mem_core_get(branch_id=branch) == memory.mem_core_get(branch_id=branch)
    assert other["a"].events()[0].count == 2
    assert other.verify().is_sound
    with pytest.raises(InvalidUpdate, match="here already"):
        other.import_(file)


def test_one_branch_travels_with_what_it_sees(memory: MemoryManager, open_memory: Open) -> None:
    memory.write_archival("b", "of b")
    memory.set_core("root", "late", "1")
    file = memory.path.with_name("a.jsonl")
    memory.export(file, "a")
    other = open_memory("other.sqlite")
    assert other.import_(file) == ["root", "a"]
    assert set(other["root"].core.entries()) == {"goal"}


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "foreign", "missing"])
def test_a_damaged_export_is_refused_whole(
    memory: MemoryManager, open_memory: Open, damage: str
) -> None:
    file = memory.path.with_name("out.jsonl")
    memory.export(file)
    lines = file.read_text().splitlines()
    texts = {
        "cut": "\n".join(lines[:-1]),
        "changed": file.read_text().replace("a faster solver", "a slower solver"),
        "empty": "",
        "foreign": json.dumps({"x": 1}) + "\n" + json.dumps({"y": 2}),
    }
    if damage == "missing":
        file.unlink()
    else:
        file.write_text(texts[damage])
    other = open_memory("other.sqlite")
    with pytest.raises(InvalidUpdate):
        other.import_(file)
    assert other.branches() == []


@pytest.mark.parametrize("name", ["m.sqlite", ":memory:", "file:m.sqlite?mode=memory"])
def test_a_memory_with_a_relative_path_stays_where_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with BranchedMemory(name) as memory, ThreadPoolExecutor(1) as other:
        run = memory.create("run")
        run.append({"content": "before"})
        monkeypatch.chdir(tmp_path / "there")
        assert [event.text for event in other.submit(run.events).result()] == ["before"]
        run.append({"content": "after"})
        assert memory.verify().is_sound

    assert list(Path().iterdir()) == []
    with BranchedMemory(tmp_path / "here" / name) as memory:
        assert [event.text for event in memory["run"].events()] == ["after", "before"]


def test_a_folder_is_refused_with_the_advice_to_choose_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnwritable, match="is a folder; choose a file in it"):
        BranchedMemory(tmp_path)


def test_a_write_that_is_interrupted_as_it_begins_holds_up_no_other(
    open_memory: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, begin = open_memory(), connections._begin

    def interrupted(connection: sqlite3.Connection) -> None:
        begin(connection)
        raise KeyboardInterrupt

    monkeypatch.setattr(connections, "_begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.create_branch(None, branch_id="lost")
    monkeypatch.setattr(connections, "_begin", begin)

    assert memory.create_branch(None, branch_id="run") == "run"
    assert list(memory) == ["run"]
