"""Slips of a user or of a model are refused with an error that names each of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from taskweaver.memory.branched import (
    InvalidUpdate,
    MemoryConfig,
    MemoryManager,
    MissingMemoryUpdateError,
    RecordNotVisible,
    UnknownBranch,
    read_reply,
)
from taskweaver.memory.branched.errors import StoreUnwritable, translated


def test_a_block_with_wrong_ids_names_all_of_them_and_writes_nothing(
    memory: MemoryManager,
) -> None:
    block = {
        "core": {"best": "8"},
        "archival_update": [{"id": 991, "text": "x"}],
        "archival_delete": [992],
        "recall_evict": {"ids": [993]},
        "recall_delete": [994],
    }
    with pytest.raises(RecordNotVisible) as caught:
        memory["a"].apply(block)
    lines = str(caught.value).splitlines()
    assert lines[0] == "memory_update: nothing was applied."
    paths = ["archival_update[0].id", "archival_delete[0]", "recall_evict.ids", "recall_delete[0]"]
    assert [line.split(": ")[0] for line in lines[1:]] == paths
    assert all(str(991 + n) in line for n, line in enumerate(lines[1:]))
    assert "best" not in memory["a"].core


def test_a_block_that_only_stands_in_a_fence_is_named(memory: MemoryManager) -> None:
    fenced = '```json\n<memory_update>\n{"core": {"a": "1"}}\n</memory_update>\n{"x": 1}\n```'
    with pytest.raises(MissingMemoryUpdateError, match="in a fence or in a JSON string"):
        read_reply(fenced, "required")
    with pytest.raises(MissingMemoryUpdateError) as caught:
        read_reply("I forgot", "required")
    assert "fence" not in str(caught.value)


def test_true_is_kept_as_json_writes_it(memory: MemoryManager) -> None:
    memory["a"].apply({"core": {"is_fast": True, "threads": 8}})
    assert memory["a"].core["is_fast"] == "true"
    assert memory["a"].core["threads"] == "8"


def test_an_empty_event_and_a_negative_limit_are_refused(memory: MemoryManager) -> None:
    with pytest.raises(InvalidUpdate, match="recall"):
        memory["a"].write(core={"k": "v"}, event={})
    assert "k" not in memory["a"].core
    with pytest.raises(InvalidUpdate, match="limit"):
        memory["a"].history(limit=-1)


def test_events_have_the_id_that_calls_take(memory: MemoryManager) -> None:
    branch = memory["a"]
    branch.append({"kind": "k", "content": "c"})
    event = branch.events()[0]
    assert branch.occurrences(event.id) == [event]
    assert repr(branch.core) == "CoreKeys('a')"


def test_an_unknown_branch_says_where_the_names_are(memory: MemoryManager) -> None:
    with pytest.raises(UnknownBranch, match=r"'nope' is no branch here; `branches\(\)`"):
        memory["nope"]


def test_the_limits_of_the_original_are_given_by_place(memory: MemoryManager) -> None:
    memory.mem_archival_write("x" * 4000)
    assert len(memory.render_for_prompt("root", "draft", 500)) <= 500
    assert len(memory.render_for_prompt("root", "draft", 500, True)) > 2500


def test_arguments_of_the_original_are_no_data_of_an_event(memory: MemoryManager) -> None:
    with pytest.raises(InvalidUpdate, match="write_event: takes no log_event"):
        memory.write_event("root", "k", "text", log_event=False)
    assert memory["root"].events() == []


def test_a_file_that_may_not_be_written_is_to_be_copied(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    sqlite3.connect(path).close()
    reader = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    with pytest.raises(StoreUnwritable, match="copy it to another folder"), translated(path):
        reader.execute("CREATE TABLE t (a)")
    reader.close()


@pytest.mark.parametrize(
    "keys", [{"synchronous": "FUL"}, {"consolidation_trigger": "hgh"}, {"core_max_chars": -1}]
)
def test_a_setting_that_sqlite_would_misread_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(InvalidUpdate, match=next(iter(keys))):
        MemoryConfig(**keys)


@pytest.mark.parametrize("path", [None, 5, "", ".", "a\0b", "\ud800", b"x"])
def test_a_path_that_no_file_can_have_is_refused(memory: MemoryManager, path: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: MemoryManager(path),
        lambda: memory.backup(path),
        lambda: memory.export(path),
        lambda: memory.import_(path),
        lambda: memory.write_page(path),
        lambda: memory.ingest_idea_md(path),
        lambda: memory.ingest_phase0_internal_info({"a": 1}, artifact_paths=[path]),
        lambda: memory.mem_resources_resolve_and_refresh(path, "."),
    ]
    if path not in {"", "."}:
        calls += [
            lambda: memory.erase(text="nowhere", folders=[path]),
            lambda: memory.generate_final_memory_for_paper(path, "root"),
        ]
    for call in calls:
        with pytest.raises(InvalidUpdate) as caught:
            call()
        str(caught.value).encode()
    assert memory.verify().is_sound


def test_several_paths_may_be_one_and_are_no_number(memory: MemoryManager, tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text("use blocks")
    assert memory.ingest_phase0_internal_info({"a": 1}, artifact_paths=tmp_path / "plan.txt")
    with pytest.raises(InvalidUpdate, match="must be a list of paths"):
        memory.erase(text="nowhere", folders=5)


def test_a_folder_in_the_place_of_a_copy_is_refused_and_nothing_is_left(
    memory: MemoryManager, tmp_path: Path
) -> None:
    (tmp_path / "taken").mkdir()
    for write in (memory.backup, memory.export, memory.write_page):
        with pytest.raises(StoreUnwritable):
            write(tmp_path / "taken")
    assert not list(tmp_path.glob("taken.*"))


def test_a_branch_without_a_visible_name_is_refused(memory: MemoryManager) -> None:
    before = memory.seq
    for call in (
        lambda: memory.create(" "),
        lambda: memory["a"].fork("  "),
        lambda: memory.rename_node("a", " "),
    ):
        with pytest.raises(InvalidUpdate, match="printable"):
            call()
    assert memory.seq == before
