"""The file: many writers, sudden deaths, bad files, other versions."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from full_disks import largest_file
from memories import QUIET, Open, run_sql
from patience import PATIENCE_S

from taskweaver.memory.branched import (
    BranchedMemory,
    InvalidUpdate,
    MemoryManager,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreTooNew,
    StoreUnwritable,
)
from taskweaver.memory.branched.storage import connections
from taskweaver.memory.branched.storage.schema import VERSION


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
        command = [sys.executable, "-c", KILLED, str(memory.path), name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(3 + 7 * round_):
                process.stdout.readline()
            process.kill()
            said = process.stdout.read().splitlines()
        told = [line.split() for line in said if line.count(" ") == 1]
        kept = {record.id: record.text for record in memory[name].records()}
        for n, id_ in told:
            assert kept[int(id_)] == f"record {n} of {name}"
        assert sum(event.count for event in memory[name].events()) >= len(told)
        assert memory.verify().is_sound
        memory.write_event(name, "k", "life goes on")


def test_a_file_held_by_another(memory: MemoryManager, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_newer_or_impossible_file_is_refused(memory: MemoryManager, tmp_path: Path) -> None:
    memory.close()
    run_sql(memory.path, f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StoreTooNew, match="Update the program"):
        MemoryManager(memory.path, QUIET)
    (tmp_path / "file").write_text("x")
    for below in ("m.sqlite", "folder/m.sqlite"):
        with pytest.raises(StoreUnwritable, match=r"file is a file and no folder\. Choose a file"):
            MemoryManager(tmp_path / "file" / below, QUIET)
    with pytest.raises(StoreUnwritable, match="is a folder; choose a file in it"):
        MemoryManager(tmp_path, QUIET)


def test_files_that_are_no_memory_are_refused_and_stay_as_they_are(tmp_path: Path) -> None:
    other, noise = tmp_path / "other.db", tmp_path / "noise.db"
    run_sql(other, "CREATE TABLE mine (x)")
    noise.write_bytes(b"no database at all" * 100)
    for path in (other, noise):
        before = path.read_bytes()
        with pytest.raises(StoreCorrupt):
            MemoryManager(path, QUIET)
        assert path.read_bytes() == before


def test_a_closed_memory_says_so(memory: MemoryManager) -> None:
    memory.close()
    memory.close()
    for call in (lambda: memory["a"].core.entries(), lambda: memory.mem_core_set("x", "1")):
        with pytest.raises(StoreClosed):
            call()


def test_writes_are_as_durable_as_configured(open_memory: Open) -> None:
    for choice, level in (("FULL", 2), ("NORMAL", 1)):
        memory = open_memory(f"{choice}.sqlite", synchronous=choice)
        writing = memory._parts.database._writing
        assert writing.execute("PRAGMA synchronous").fetchone() == (level,)


def test_a_backup_is_a_memory_too(memory: MemoryManager, tmp_path: Path) -> None:
    memory.backup(tmp_path / "copy.sqlite")
    memory.mem_core_set("late", "1")
    with MemoryManager(tmp_path / "copy.sqlite", QUIET) as copy:
        assert set(copy["a"].core.entries()) == {"goal"}
        assert copy.verify().is_sound
    with pytest.raises(StoreUnwritable):
        memory.backup(tmp_path / "no" / "folder.sqlite")


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
        assert other.render_for_prompt(branch)
        texts = [item.text for item in memory[branch].records()]
        assert [item.text for item in other[branch].records()] == texts
        assert other.mem_core_get(branch_id=branch) == memory.mem_core_get(branch_id=branch)
    assert other["a"].events()[0].count == 2
    assert other.verify().is_sound
    with pytest.raises(InvalidUpdate, match="here already"):
        other.import_(file)


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "foreign", "missing"])
def test_a_damaged_export(memory: MemoryManager, open_memory: Open, damage: str) -> None:
    file = memory.path.with_name("out.jsonl")
    memory.export(file)
    text = file.read_text()
    texts = {
        "cut": "\n".join(text.splitlines()[:-1]),
        "changed": text.replace("a faster solver", "a slower solver"),
        "empty": "",
        "foreign": '{"x": 1}\n{"y": 2}',
    }
    file.unlink()
    if damage != "missing":
        file.write_text(texts[damage])
    other = open_memory("other.sqlite")
    with pytest.raises(InvalidUpdate):
        other.import_(file)
    assert other.branches() == []


@pytest.mark.parametrize("name", ["m.sqlite", ":memory:", "file:m.sqlite?mode=memory"])
def test_a_relative_path_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
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


def test_a_write_interrupted_at_once(open_memory: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, begin = open_memory(), connections._begin

    def interrupted(connection: sqlite3.Connection, wait_s: float) -> None:
        begin(connection, wait_s)
        raise KeyboardInterrupt

    monkeypatch.setattr(connections, "_begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.create_branch(None, branch_id="lost")
    monkeypatch.setattr(connections, "_begin", begin)
    assert memory.create_branch(None, branch_id="run") == "run"
    assert list(memory) == ["run"]


WRITES: dict[str, Callable[[MemoryManager, int], object]] = {
    "record": lambda m, n: m["a"].remember(f"record {n} " * 40, tags=["T"]),
    "event": lambda m, n: m["a"].append({"kind": "k", "content": f"event {n} " * 40}),
    "core": lambda m, n: m["a"].core.set(f"k{n % 9}", f"value {n} " * 40),
    "fork": lambda m, n: m["a"].fork(f"fork{n}"),
    "block": lambda m, n: m["a"].apply(
        {"core": {"b": f"{n}"}, "archival": [{"text": f"block {n} " * 40}]}
    ),
}


def state(memory: MemoryManager) -> tuple[object, ...]:
    handle = memory["a"]
    return list(memory), handle.core.entries(), handle.records(), handle.events()


@pytest.mark.parametrize("name", WRITES)
def test_a_write_without_room_is_refused_whole(open_memory: Open, name: str) -> None:
    memory = open_memory(memory_log_enabled=True, core_max_chars=100_000, auto_consolidate=False)
    memory.create_branch(None, branch_id="a")
    write, refused, kept = WRITES[name], 0, 0
    log = memory.path.with_name(memory.path.name + "-wal")
    for step in range(60):
        # Room for a few bytes more than there are, up to some pages: each write fails once.
        room = max(log.stat().st_size, memory.path.stat().st_size) + 400 * (step % 30)
        before = state(memory)
        try:
            with largest_file(room):
                write(memory, step)
        except StoreUnwritable:
            refused += 1
            assert state(memory) == before
            write(memory, 1000 + step)
        kept += 1
        assert state(memory) != before
    assert refused > 5
    assert kept == 60
    assert memory.verify().is_sound
    shown = state(memory)
    memory.close()
    with open_memory() as again:
        assert state(again) == shown


def test_a_file_that_finds_no_room_at_all_is_not_opened(open_memory: Open) -> None:
    with largest_file(2000), pytest.raises(StoreUnwritable):
        open_memory("none.sqlite", is_new=True)
    with open_memory("none.sqlite", is_new=True) as memory:
        assert memory.path.stat().st_mode & 0o077 == 0  # its owner's alone
        memory.create_branch(None, branch_id="a")
        assert memory.verify().is_sound


_FORKED = """
import os, signal, sys
from taskweaver.memory.branched import BranchedMemory, StoreClosed

signal.alarm(20)
memory = BranchedMemory(sys.argv[1])
root = memory.create("root")
root.remember("of the parent")
ready, go = os.pipe()
child = os.fork()
if child == 0:
    os.close(go)
    os.read(ready, 1)  # the parent has closed the memory
    refused = 0
    for act in (lambda: root.remember("lost"), root.records, lambda: memory.erase(text="lost")):
        try:
            act()
        except StoreClosed as error:
            refused += "forked" in str(error)
    memory.close()
    with BranchedMemory(sys.argv[1]) as own:
        own["root"].remember("of the child")
    os._exit(refused)
os.close(ready)
memory.close()
os.close(go)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_loses_no_write_and_opens_the_file_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _FORKED, str(tmp_path / "m.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "3", done.stderr
    with BranchedMemory(tmp_path / "m.sqlite") as memory:
        assert [item.text for item in memory["root"].records()] == ["of the child", "of the parent"]
        assert memory.verify().problems == ()
    calls = (tmp_path / "logs" / "memory_calls.jsonl").read_text().splitlines()
    assert len(calls) == len(set(calls))
