"""A memory that is rebuilt from its logs shows the same, or says what the logs lack."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memories import put_empty
from patience import PATIENCE_S
from sizes import examples

from taskweaver.memory.branched import (
    BranchedMemory,
    BranchedMemoryError,
    InvalidUpdate,
    MemoryConfig,
    MemoryManager,
    RecordNotVisible,
    StoreUnwritable,
)
from taskweaver.memory.branched.conversation.turns import Turns
from taskweaver.memory.branched.repair.rebuild import RebuiltMemory, rebuild

QUIET = MemoryConfig(memory_log_enabled=False)
SAID = st.sampled_from(["ran", "failed at step 3", "naïve ☃", "x'; DROP TABLE events; --", "a\nb"])
PICK = st.integers(0, 1000)


def open_logged(path: Path, **keys: Any) -> MemoryManager:
    given = {"synchronous": "NORMAL", "recall_max_events": 3, "log_dir": path.parent / "logs"}
    return MemoryManager(put_empty(path), MemoryConfig(**{**given, **keys}))


def rows_file(folder: Path) -> Path:
    return folder / "logs" / "memory_primitive.jsonl"


def views(path: Path, *, at: int | None = None) -> dict[str, Any]:
    """Return what every branch sees, at a row or now."""
    with BranchedMemory(path, QUIET) as memory:
        assert memory.verify().problems == ()
        found: dict[str, Any] = {"branches": [] if at is not None else memory.branches()}
        for name in memory:
            branch = memory[name]
            found[name] = (
                branch.core.entries(at=at),
                branch.events(at=at),
                branch.records(at=at),
                branch.digest(at=at),
                branch.render("draft", task="failed step", at=at).text,
            )
            if at is None:
                found[name] += (branch.search("failed step record"), branch.find_events("ran"))
        return found


def seq_of(path: Path) -> int:
    with BranchedMemory(path, QUIET) as memory:
        return memory.seq


def assert_same(folder: Path, made: RebuiltMemory) -> None:
    old, new = folder / "m.sqlite", folder / "new.sqlite"
    assert made.problems == ()
    assert made.seq == seq_of(new) == seq_of(old)
    assert views(new) == views(old)
    for at in range(0, made.seq, 1 + made.seq // 5):
        assert views(new, at=at) == views(old, at=at)


Action = Callable[[MemoryManager, str, int, str], object]


def prune(memory: MemoryManager, branch: str, number: int, _said: str) -> None:
    if number % 3 == 0 and branch != "root":
        memory[branch].prune()
        memory.collect_garbage()


def update(memory: MemoryManager, branch: str, number: int, said: str) -> None:
    records = memory[branch].records()
    if records:
        memory[branch].update(records[number % len(records)].id, text=said)


def forget(memory: MemoryManager, branch: str, number: int, _said: str) -> None:
    records, events = memory[branch].records(), memory[branch].events()
    if records:
        memory[branch].forget(records[number % len(records)].id)
    if events:
        memory[branch].forget_event(events[number % len(events)].seq)


def converse(memory: MemoryManager, branch: str, number: int, said: str) -> None:
    turns: Turns = memory.turns
    turns.start_round(branch, f"r{number}", said)


def apply_block(memory: MemoryManager, branch: str, number: int, said: str) -> None:
    block = {
        "core": {f"k{number % 3}": said},
        "archival": [{"text": f"record {said}", "tags": ["T"]}],
        "recall": {"kind": "k", "content": said},
        "recall_evict": {"oldest": number % 2},
        "core_delete": [f"k{number % 2}"],
    }
    memory[branch].apply(block, branch, "draft")


ACTIONS: dict[str, Action] = {
    "set": lambda memory, branch, n, said: memory[branch].core.set(
        f"k{n % 3}", said, ttl=n % 2 * 9
    ),
    "delete": lambda memory, branch, n, _said: memory[branch].core.delete(f"k{n % 3}"),
    "append": lambda memory, branch, _n, said: memory[branch].append({"kind": "k", "text": said}),
    "remember": lambda memory, branch, n, said: memory[branch].remember(f"record {n % 4} {said}"),
    "fork": lambda memory, branch, n, _said: memory[branch].fork(f"b{n}", live=n % 4 == 0),
    "fork_past": lambda memory, branch, n, _said: memory[branch].fork(at=n % (memory.seq + 1)),
    "rename": lambda memory, branch, n, _said: memory.rename_node(branch, f"node-{n}"),
    "seal": lambda memory, branch, n, _said: memory[branch].seal() if n % 5 == 0 else None,
    "consolidate": lambda memory, branch, n, _said: memory[branch].consolidate(keep=n % 3),
    "fold": lambda memory, branch, _n, _said: memory[branch].relieve("critical"),
    "merge": lambda memory, branch, n, _said: memory.merge(
        branch, list(memory)[n % len(list(memory))], "theirs"
    ),
    "prune": prune,
    "update": update,
    "forget": forget,
    "converse": converse,
    "block": apply_block,
}


@settings(max_examples=examples(25))
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(sorted(ACTIONS)), PICK, PICK, SAID, st.booleans()), max_size=25
    )
)
def test_a_rebuilt_memory_shows_the_same_after_any_operations(
    steps: list[tuple[str, int, int, str, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Two memories on one file stand for two processes, whose lines mix.
        pair = [open_logged(folder / "m.sqlite") for _ in range(2)]
        pair[0].create_branch(None, branch_id="root", live=True)
        for action, pick, number, said, is_other in steps:
            memory = pair[is_other]
            names = list(memory)
            try:
                ACTIONS[action](memory, names[pick % len(names)], number, said)
            except BranchedMemoryError:  # a sealed branch, a name that is taken: nothing is written
                continue
        for memory in pair:
            memory.close()
        if seq_of(folder / "m.sqlite"):
            assert_same(folder, rebuild(folder / "logs", folder / "new.sqlite"))


def test_an_import_is_in_the_logs(tmp_path: Path) -> None:
    with open_logged(tmp_path / "other.sqlite", memory_log_enabled=False) as other:
        other.bind(other.create_branch(None, branch_id="there"))
        for n in range(5):
            other.mem_archival_write(f"record {n}")
            other.turns.start_round("there", f"r{n}", "hello")
        other.seal("there")
        other.export(tmp_path / "there.jsonl")
    with open_logged(tmp_path / "m.sqlite") as memory:
        memory.bind(memory.create_branch(None, branch_id="root"))
        memory.mem_core_set("k", "v")
        memory.import_(tmp_path / "there.jsonl")
        memory.mem_core_set("k", "w")
    assert_same(tmp_path, rebuild(tmp_path / "logs", tmp_path / "new.sqlite"))


def test_a_refused_write_is_in_no_log(tmp_path: Path) -> None:
    with open_logged(tmp_path / "m.sqlite") as memory:
        memory.bind(memory.create_branch(None, branch_id="root"))
        memory.mem_core_set("k", "v")
        block = {"core": {"undone": "x"}, "archival_update": [{"id": 99, "text": "y"}]}
        with pytest.raises(RecordNotVisible):
            memory.apply_llm_memory_updates("root", block)
        memory.mem_core_set("k", "w")
    assert "undone" not in rows_file(tmp_path).read_text()
    assert_same(tmp_path, rebuild(tmp_path / "logs", tmp_path / "new.sqlite"))


def test_a_rebuilt_memory_has_its_secrets_masked(tmp_path: Path) -> None:
    with open_logged(tmp_path / "m.sqlite") as memory:
        memory.bind(memory.create_branch(None, branch_id="root"))
        memory.mem_core_set("db_password", "hunter2-hunter2")
        memory.mem_archival_write("the key is sk-proj-abcdefghijklmnopqrst")
        memory.mem_archival_write("x" * 5000)
    assert "hunter2" not in rows_file(tmp_path).read_text()
    made = rebuild(tmp_path / "logs", tmp_path / "new.sqlite")
    assert (made.is_whole, made.masked) == (True, 2)
    with BranchedMemory(tmp_path / "new.sqlite", QUIET) as new:
        assert new["root"].core["db_password"] == "[[masked:secret]]"
        assert [item.text for item in new["root"].records()] == [
            "x" * 5000,  # never cut
            "the key is [[masked:secret]]",
        ]


def test_lines_of_a_log_name_operation_branch_node_and_phase(tmp_path: Path) -> None:
    with open_logged(tmp_path / "m.sqlite") as memory:
        memory.create_branch(None, branch_id="root", live=True)
        memory.mem_node_fork("root", "n1")
        event = {"kind": "run_failed", "content": "oom", "node_id": "n1", "phase": "debug"}
        memory.mem_node_write("n1", core_updates={"k": "v"}, recall_event=event)
        memory.mem_core_del("k", branch_id="n1")
        id_ = memory.mem_archival_write("one", branch_id="root")
        memory.mem_archival_update(id_, text="two", branch_id="n1")
        memory.seal("n1")
    lines = [json.loads(line) for line in rows_file(tmp_path).read_text().splitlines()]
    rows = [line for line in lines if line["memory_type"] != "log"]
    assert {line["layer"] for line in lines} == {"primitive"}
    assert [line["op"] for line in rows] == [
        "create_branch", "fork", "set_core", "write_event", "core_delete", "write_archival",
        "update_archival", "seal",
    ]  # fmt: skip
    noted = next(line for line in rows if line["op"] == "write_event")
    assert (noted["branch_id"], noted["node_id"], noted["phase"]) == ("n1", "n1", "Phase 2: Debug")
    assert noted["row"]["kind"] == "run_failed"
    assert [line["seq"] for line in rows if "seq" in line] == [1, 2, 3, 4, 5, 6]


WRITER = """
import os, sys
from pathlib import Path
from taskweaver.memory.branched import MemoryConfig, MemoryManager

path, count, name, *others = Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
name = next((other for other in others if os.fork() == 0), name)
config = MemoryConfig(synchronous="NORMAL", log_dir=path.parent / "logs")
with MemoryManager(path, config) as memory:
    memory.fork("root", name)
    for n in range(count):
        memory.mem_core_set("n", str(n), branch_id=name)
        memory.write_event(name, "k", f"event {n}")
        memory.write_archival(name, f"record {n} of {name}")
        print(n, flush=True)
if name == sys.argv[3]:
    assert [os.wait()[1] for _ in others] == [0] * len(others)
"""


def start_writer(folder: Path, count: int, *names: str) -> subprocess.Popen[str]:
    """Start a process for each name, the others as forks of the first, which waits for them."""
    arguments = [sys.executable, "-c", WRITER, str(folder / "m.sqlite"), str(count), *names]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def make_root(folder: Path) -> None:
    with open_logged(folder / "m.sqlite") as memory:
        memory.create_branch(None, branch_id="root", live=True)


def test_lines_of_several_processes_are_one_memory(tmp_path: Path) -> None:
    make_root(tmp_path)
    writer = start_writer(tmp_path, 60, "p0", "p1", "p2")
    writer.communicate(timeout=PATIENCE_S)
    assert writer.returncode == 0
    made = rebuild(tmp_path / "logs", tmp_path / "new.sqlite")
    assert_same(tmp_path, made)
    assert made.rows["archival"] == 180


def test_a_log_that_two_memories_wrote_is_reported_as_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with open_logged(tmp_path / f"{name}.sqlite") as memory:
            memory.create_branch(None, branch_id="run")
            memory.mem_core_set("memory", name, branch_id="run")
    made = rebuild(tmp_path / "logs", tmp_path / "new.sqlite")
    assert (made.is_whole, made.clashes) == (False, 2)
    assert "several memories" in made.problems[0]
    assert "(a.sqlite, b.sqlite)" in made.problems[0]
    for name in made.files:
        target = tmp_path / f"new-{name}"
        alone = rebuild(tmp_path / "logs", target, file_name=name)
        assert (alone.is_whole, alone.files) == (True, made.files)
        with MemoryManager(target, MemoryConfig(memory_log_enabled=False)) as memory:
            assert memory["run"].core["memory"] == name.removesuffix(".sqlite")
    with pytest.raises(InvalidUpdate, match=r"'c.sqlite'; it has those of a.sqlite, b.sqlite"):
        rebuild(tmp_path / "logs", tmp_path / "c.sqlite", file_name="c.sqlite")


def test_the_newer_rows_are_taken_where_a_backup_was_put_in_place(tmp_path: Path) -> None:
    file, copy = tmp_path / "m.sqlite", tmp_path / "backup.sqlite"
    with open_logged(file) as memory:
        memory.create_branch(None, branch_id="run")
        memory.backup(copy)
        memory.write_event("run", "step", "given up with the file")
        memory.mem_core_set("former", "1", branch_id="run")
    copy.replace(file)
    with open_logged(file) as memory:
        memory.mem_core_set("present", "2", branch_id="run")
        memory.write_event("run", "step", "after the backup")

    made = rebuild(tmp_path / "logs", tmp_path / "new.sqlite")

    assert (made.clashes, made.left_out) == (2, {})
    assert "Move the log away" in made.problems[0]
    with MemoryManager(tmp_path / "new.sqlite", MemoryConfig(memory_log_enabled=False)) as memory:
        assert dict(memory["run"].core) == {"present": "2"}
        assert [event.text for event in memory["run"].events()] == ["after the backup"]


def test_the_log_of_a_killed_writer_is_a_beginning_and_reported_as_one(tmp_path: Path) -> None:
    make_root(tmp_path)
    with start_writer(tmp_path, 100_000, "p") as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == 300:
                os.kill(writer.pid, signal.SIGKILL)
                break
    made = rebuild(tmp_path / "logs", tmp_path / "new.sqlite")
    assert (made.is_whole, made.unfinished, made.missing) == (False, 1, ())
    assert 0 < made.seq <= seq_of(tmp_path / "m.sqlite")
    old, new = tmp_path / "m.sqlite", tmp_path / "new.sqlite"
    now, then = views(new, at=made.seq), views(old, at=made.seq)
    assert now == then


def test_torn_double_and_missing_lines_are_survived_and_reported(tmp_path: Path) -> None:
    make_root(tmp_path)
    start_writer(tmp_path, 5, "p").communicate(timeout=PATIENCE_S)
    path = rows_file(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    numbered = {json.loads(line).get("seq"): place for place, line in enumerate(lines)}
    torn = lines[numbered[4]][:40] + b"\n"
    odd = [b"[1]\n", b"null\n", b'{"table": "core_kv; --", "seq": 1, "row": {}}\n', b"\xff\n"]
    bad_row = lines[numbered[5]].replace(b'"kind"', b'"kin) VALUES (1); --"')
    kept = [
        line for place, line in enumerate(lines) if place != numbered[4] and place != numbered[5]
    ]
    path.write_bytes(b"".join([*reversed(kept), *kept, *odd, torn, bad_row]))
    made = rebuild(tmp_path / "logs", tmp_path / "new.sqlite")
    assert made.missing == ((4, 5),)
    assert made.unreadable == 6
    assert made.problems == (
        "rows that are not in the log: 4 to 5",
        "lines that cannot be read: 6",
    )
    with BranchedMemory(tmp_path / "new.sqlite", QUIET) as new:
        assert new.verify().problems == ()
        assert new["p"].core["n"] == "4"


def test_rows_of_a_branch_that_the_log_lacks_are_kept_and_reported(tmp_path: Path) -> None:
    make_root(tmp_path)
    start_writer(tmp_path, 2, "p").communicate(timeout=PATIENCE_S)
    path = rows_file(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if json.loads(line)["op"] != "fork"))
    made = rebuild(tmp_path / "logs", tmp_path / "new.sqlite")
    assert made.missing_branches == ((2, 2),)
    with BranchedMemory(tmp_path / "new.sqlite", QUIET) as new:
        assert new["recovered-2"].core["n"] == "1"


def test_rows_from_before_the_log_are_reported(tmp_path: Path) -> None:
    with open_logged(tmp_path / "m.sqlite", memory_log_enabled=False) as memory:
        memory.bind(memory.create_branch(None, branch_id="root"))
        memory.mem_core_set("a", "1")
        memory.mem_core_set("b", "2")
    with open_logged(tmp_path / "m.sqlite") as memory:
        memory.mem_core_set("c", "3", branch_id="root")
    made = rebuild(tmp_path / "logs", tmp_path / "new.sqlite")
    assert (made.missing, made.missing_branches) == (((1, 2),), ((1, 1),))


def test_what_was_erased_is_in_no_rebuilt_memory(tmp_path: Path) -> None:
    with open_logged(tmp_path / "m.sqlite") as memory:
        root = memory.create("root")
        root.core["address"] = "Elm 4"
        record = root.remember("The user lives in Elm Street 4711, second floor")
        root.append({"kind": "said", "content": "I live in Elm Street 4711, second floor"})
        root.core["kept"] = "yes"
        memory.erase(key="address")
        memory.erase(record_id=record)
        memory.erase(text="Elm Street 4711")
    made = rebuild(tmp_path / "logs", tmp_path / "new.sqlite")
    assert made.problems == ()
    assert b"Elm" not in (tmp_path / "new.sqlite").read_bytes()
    with BranchedMemory(tmp_path / "new.sqlite", QUIET) as new:
        assert dict(new["root"].core) == {"kept": "yes"}
        assert new["root"].records() == []
        (event,) = new["root"].events()
        assert event.text.startswith("I live in [erased]")


def test_a_rebuilt_memory_has_the_names_that_an_erasure_left(tmp_path: Path) -> None:
    with open_logged(tmp_path / "m.sqlite") as memory:
        root = memory.create("root")
        for name in ("Elm Street 4711", "Elm Street 4711 north", "at Elm Street 4711", "other"):
            root.fork(name)
        root.fork("by uid", node_uid="Elm Street 4711")
        memory.erase(text="Elm Street 4711")
        names = [(branch.id, branch.node_uid) for branch in memory.branches()]
    rebuild(tmp_path / "logs", tmp_path / "new.sqlite")
    with BranchedMemory(tmp_path / "new.sqlite", QUIET) as new:
        assert [(branch.id, branch.node_uid) for branch in new.branches()] == names


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    make_root(tmp_path)
    (tmp_path / "new.sqlite").write_text("mine")
    with pytest.raises(StoreUnwritable, match="exists"):
        rebuild(tmp_path / "logs", tmp_path / "new.sqlite")
    assert (tmp_path / "new.sqlite").read_text() == "mine"


@pytest.mark.parametrize("content", [None, b"", b"no log\n"])
def test_a_folder_without_a_log_is_refused(tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / "logs").mkdir()
    if content is not None:
        rows_file(tmp_path).write_bytes(content)
    with pytest.raises(InvalidUpdate, match=r"cannot be read|no log of the rows"):
        rebuild(tmp_path / "logs", tmp_path / "new.sqlite")
    assert not (tmp_path / "new.sqlite").exists()
    assert not (tmp_path / "new.sqlite.partial").exists()
