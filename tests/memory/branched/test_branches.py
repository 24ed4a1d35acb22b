"""Forks, snapshots, live branches, and the ends branches come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskweaver.memory.branched import BranchSealed, InvalidUpdate, MemoryManager, UnknownBranch
from taskweaver.utils.redact import register_secret


def core(memory: MemoryManager, branch: str, **options: int) -> dict[str, str]:
    return {key: entry.value for key, entry in memory[branch].core.entries(**options).items()}


def test_a_node_is_found_by_either_name(memory: MemoryManager) -> None:
    memory.mem_node_fork("a", "n1")
    memory.update_branch_node_uid("n1", "uid-1")
    memory.mem_node_write(
        "uid-1",
        core_updates={"x": 1, "y": {"value": "2", "importance": 5}},
        recall_event={"kind": "start", "summary": "began"},
        archival_records=[{"text": "a note", "tags": ["N"]}],
    )
    seen = memory.mem_node_read("n1")
    assert seen["core"] == {"goal": "a faster solver", "x": "1", "y": "2"}
    assert memory["n1"].core.entries()["x"].importance == 3
    assert memory["n1"].core.entries()["y"].importance == 5
    assert [event["summary"] for event in seen["recall"]] == ["began"]
    assert [(item["text"], item["tags"]) for item in seen["archival"]] == [("a note", ["N"])]
    assert set(memory.mem_node_read("n1", scope="core")) == {"core"}


def test_what_is_not_there_is_said_at_once(memory: MemoryManager) -> None:
    memory.update_branch_node_uid("a", "twin")
    memory.update_branch_node_uid("b", "twin")
    for call in (
        lambda: memory.fork("nobody", "c"),
        lambda: memory["nobody"].core.entries(),
        lambda: memory.mem_recall_append({"content": "x"}, branch_id="nobody"),
        lambda: memory.render_for_prompt("nobody"),
        lambda: memory.merge("a", "nobody"),
        lambda: memory["twin"].core.entries(),
    ):
        with pytest.raises(UnknownBranch):
            call()
    for bad in (
        lambda: memory.fork("a", "b"),
        lambda: memory.fork("a", "future", at=memory.seq + 1),
        lambda: memory.fork("a", "past", at=-1),
        lambda: memory.mem_node_read("a", scope="everything"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidUpdate):
            bad()


def test_an_empty_memory_says_how_to_begin(tmp_path: Path) -> None:
    with MemoryManager(tmp_path / "new.sqlite") as memory:
        assert memory.root_branch_id is None
        with pytest.raises(UnknownBranch, match="create_branch"):
            memory.mem_core_set("a", "b")
        memory.mem_node_fork(None, "first")
        assert memory.root_branch_id == "first"


def test_a_sealed_branch_is_read_and_forked_but_not_written(memory: MemoryManager) -> None:
    memory.seal("a")
    with pytest.raises(BranchSealed, match="fork it"):
        memory.mem_core_set("x", "1", branch_id="a")
    memory.fork("a", "a2")
    memory.mem_core_set("x", "1", branch_id="a2")
    assert core(memory, "a2")["x"] == "1"


def test_garbage_is_what_only_pruned_branches_see(memory: MemoryManager) -> None:
    memory.mem_archival_write("inherited", branch_id="a")
    memory.fork("a", "child")
    memory.mem_archival_write("of a alone", branch_id="a")
    memory.mem_archival_write("of b", branch_id="b")
    memory.fork("b", "b2")
    memory.prune("a", subtree=False)
    assert set(memory.prune("b")) == {"b", "b2"}
    with pytest.raises(BranchSealed):
        memory.fork("b", "no")
    dry = memory.collect_garbage(dry_run=True)
    assert dry.rows == {"archival": 2}
    assert len(memory.branches()) == 5
    done = memory.collect_garbage()
    assert done.rows == dry.rows
    assert set(done.branches) == {"b", "b2"}
    assert [item.text for item in memory["child"].records()] == ["inherited"]
    assert memory.mem_archival_search("alone", branch_id="child")[0]["match"] == "recency"
    assert {branch.id for branch in memory.branches()} == {"root", "a", "child"}
    assert memory.verify().is_sound
    memory.fork("root", "b")  # its name is free again, and nothing of the old one shows
    assert memory["b"].records() == []


def test_the_cut_of_a_history_leaves_no_part_of_a_secret(memory: MemoryManager) -> None:
    register_secret("historyCanary7Xv3KpLm2Wd")
    text = f"{'x' * 100} historyCanary7Xv3KpLm2Wd"
    memory.mem_recall_append({"kind": "try", "content": text}, branch_id="a")
    assert "historyC" not in memory.history("a")[0].text


def test_two_branches_are_compared(memory: MemoryManager) -> None:
    memory.mem_core_set("lr", "0.1", branch_id="a")
    memory.mem_core_set("lr", "0.2", branch_id="b")
    memory.mem_recall_append({"kind": "k", "content": "only a"}, branch_id="a")
    record = memory.mem_archival_write("note of b", branch_id="b")
    difference = memory.diff("a", "b")
    assert difference.core == {"lr": ("0.1", "0.2")}
    assert difference.events == (["[k] only a"], [])
    assert difference.archival == ([], [int(record)])


@pytest.mark.parametrize(
    ("policy", "lr", "kept"),
    [("ours", "0.2", "deep"), ("theirs", "0.1", "shallow"), ("newest", "0.2", "shallow"),
     ("importance", "0.1", "deep")],
)  # fmt: skip
def test_a_merge_by_policy(memory: MemoryManager, policy: str, lr: str, kept: str) -> None:
    memory.mem_core_set("lr", "0.1", branch_id="a", importance=4)
    memory.mem_core_set("lr", "0.2", branch_id="b")
    memory.mem_core_set("depth", "deep", branch_id="b")
    memory.mem_core_set("depth", "shallow", branch_id="a")
    memory.mem_core_set("new", "found", branch_id="a")
    memory.mem_archival_write("a finding", tags=["F"], branch_id="a")
    report = memory.merge("a", "b", policy)
    assert set(report.conflicts) == {"lr", "depth"}
    assert core(memory, "b") == {
        "goal": "a faster solver", "lr": lr, "depth": kept, "new": "found"
    }  # fmt: skip
    (record,) = memory["b"].records()
    assert record.meta["from_branch"] == "a"
    assert "merged 'a'" in memory["b"].events()[0].text
    assert len(memory.merge("a", "b", "ours").taken) == 0


def test_a_manual_merge_with_conflicts_writes_nothing(memory: MemoryManager) -> None:
    memory.mem_core_set("lr", "0.1", branch_id="a")
    memory.mem_core_set("lr", "0.2", branch_id="b")
    before = memory.seq
    report = memory.merge("a", "b")
    assert (report.applied, report.conflicts) == (False, ["lr"])
    assert memory.seq == before
    for policy, source in (("loudest", "a"), ("ours", "b")):
        with pytest.raises(InvalidUpdate):
            memory.merge(source, "b", policy)
