"""The block a model writes: found, checked, applied whole or not at all."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memories import Open

from taskweaver.memory.branched import (
    BranchedMemoryError,
    ForbiddenMemoryUpdateError,
    InvalidUpdate,
    MalformedMemoryUpdateError,
    MemoryConfig,
    MemoryManager,
    MemoryUpdateError,
    MissingMemoryUpdateError,
    RecordNotVisible,
    instructions,
    read_reply,
)
from taskweaver.memory.branched.errors import StoreUnwritable
from taskweaver.memory.branched.protocol.audit import MemoryPromptLog
from taskweaver.memory.branched.protocol.protocol import OPERATIONS, check_updates, has_reads
from taskweaver.memory.branched.rounds import NodeMemory

BLOCK = '<memory_update>\n{"core": {"a": "1"}}\n</memory_update>'


@pytest.mark.parametrize(
    ("text", "body"),
    [
        (f'{BLOCK}\n{{"plan": 1}}', '{"plan": 1}'),
        (f"Here you are.\n{BLOCK}", "Here you are."),
        (f"before\n{BLOCK}\nafter", "before\nafter"),
        (BLOCK.replace("<memory_update>", '<memory_update version="1">'), ""),
        (BLOCK.replace("</", "<\\/"), ""),
        (f"```xml\n{BLOCK}\n```\nrest", "rest"),
        ('<memory_update>\n```json\n{"core": {"a": "1"}}\n```\n</memory_update>', ""),
    ],
)
def test_a_block_is_found_and_taken_out(text: str, body: str) -> None:
    reply = read_reply(text, "required")
    assert reply.updates == {"core": {"a": "1"}}
    assert reply.body == body


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"file": f"x\n{BLOCK}\ny"}),
        f"```python\ntext = '''\n{BLOCK}\n'''\n```",
        f"~~~\nsome\n{BLOCK}\nmore\n~~~",
    ],
)
def test_a_block_inside_content_is_content(content: str) -> None:
    reply = read_reply(f"{BLOCK}\n{content}")
    assert reply.updates == {"core": {"a": "1"}}
    assert reply.body == content
    assert read_reply(content).updates is None
    with pytest.raises(MissingMemoryUpdateError):
        read_reply(content, "required")


def test_the_three_errors_say_what_to_do() -> None:
    assert read_reply("no block").body == "no block"
    assert read_reply("<memory_update> \n</memory_update>", "required").updates == {}
    trailing = '<memory_update>{"core": {"a": "1,}",},}</memory_update>'
    assert read_reply(trailing).updates == {"core": {"a": "1,}"}}
    with pytest.raises(MissingMemoryUpdateError, match="Begin with one"):
        read_reply("no block", "required")
    with pytest.raises(ForbiddenMemoryUpdateError, match="may not"):
        read_reply(BLOCK, "forbidden")
    for inner, said in (
        ("[1]", "one JSON object"),
        ("{'a': 1}", "in double quotes is needed"),
        ('"core":{"a":1}}', "no JSON"),
        ("Sure! {}", "no JSON"),
        ('{"core": {"a": "1"}, "core": {"b": "2"}}', "'core' twice"),
        ('{"archival": [{"text": "x", "text": "y"}]}', "'text' twice"),
    ):
        with pytest.raises(MalformedMemoryUpdateError, match=said):
            read_reply(f"<memory_update>{inner}</memory_update>")
    with pytest.raises(MissingMemoryUpdateError, match="in a fence or in a JSON string"):
        read_reply(f"```json\n{BLOCK}\n{{}}\n```", "required")
    with pytest.raises(BranchedMemoryError, match="must be a text, not NoneType"):
        read_reply(None)  # type: ignore[arg-type]
    with pytest.raises(MalformedMemoryUpdateError, match="not closed"):
        read_reply('<memory_update>{"core": {}}')
    with pytest.raises(MalformedMemoryUpdateError, match="two"):
        read_reply(f"{BLOCK}\n{BLOCK}")


@given(st.text(), st.text(), st.booleans())
def test_any_reply_is_read_or_refused(before: str, inside: str, closes: bool) -> None:
    end = "</memory_update>" if closes else ""
    with contextlib.suppress(MemoryUpdateError):
        reply = read_reply(f"{before}\n<memory_update>{inside}{end}\n")
        assert reply.updates is None or isinstance(reply.updates, dict)


def test_the_instructions_name_every_operation_with_an_example_that_is_accepted() -> None:
    text = instructions()
    for operation in OPERATIONS:
        assert f'"{operation.name}": {operation.example}' in text
        for name in operation.names:
            assert check_updates({name: json.loads(operation.example)})
    assert "Begin your reply" in instructions(is_required=True)
    assert read_reply(text).updates is not None


def test_writes_come_before_reads_and_ids_come_back(memory: MemoryManager) -> None:
    block = {
        "core_get": ["threads", "goal", "nothing"],
        "archival_search": {"query": "twice as fast", "k": "3"},
        "recall_search": "tuning",
        "mem_core_set": {"threads": 8, "conf": {"value": {"x": 1}, "importance": 9}},
        "mem_archival_write": {"text": "8 threads are twice as fast", "tags": "PERF"},
        "recall": {"kind": "tuning", "content": "tried threads"},
    }
    results = memory.apply_llm_memory_updates("a", block, node_id="n1", phase="improve")
    assert results["core_get"] == {"threads": "8", "goal": "a faster solver", "nothing": None}
    (found,) = results["archival_search"]
    assert [found["id"]] == results["archival"]
    assert found["tags"] == ["LLM_INSIGHT", "PERF"]
    (event,) = results["recall_search"]
    assert [event["id"]] == results["recall"]
    assert memory["a"].core.entries()["threads"].importance == 4
    assert memory["a"].core.entries()["conf"].importance == 5
    assert "phase:improve" in memory["a"].events()[0].tags


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"core": []}, "core: must be an object"),
        ({"core": {"k": None}}, "core.k: must not be null"),
        ({"core": {"k": {"value": "v", "ttl": "soon"}}}, "core.k.ttl"),
        ({"core": {"key": "best", "value": "8"}}, 'Write {"NAME": "VALUE"}'),
        ({"mem_core_set": {"key": "best", "value": "8", "x": "1"}}, 'Write {"NAME": "VALUE"}'),
        ({"core": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]}, "set twice"),
        ({"core": [{"name": "a", "value": "1"}]}, "no field name"),
        ({"core": None, "mem_core_get": {"keys": ["a"], "k": 1}}, "core_get: must be a list"),
        ({"core_get": ["a", "b", 5]}, "core_get[2]"),
        ({"archival": "text"}, "archival: must be a list"),
        ({"archival": [{"tags": ["T"]}]}, "archival[0].text"),
        ({"archival": [{"text": "x", "tag": "T"}]}, "no field tag"),
        ({"archival_update": [{"id": 1}]}, "changes nothing"),
        ({"archival_update": [{"text": "x"}]}, "archival_update[0].id"),
        ({"archival_search": {"query": "x", "k": -1}}, "archival_search.k"),
        ({"archival_delete": ["seven"]}, "archival_delete[0]"),
        ({"archival_search": {"query": ["x"]}}, "archival_search.query"),
        ({"recall": {"kind": "k"}}, "recall[0].content"),
        ({"recall_evict": {"ids": 3}}, "recall_evict.ids"),
        ({"recall_summarize": "yes"}, "recall_summarize: must be true"),
        ({"core_set": {}}, "no such operation"),
        ({"core": {}, "mem_core_set": {}}, "given twice"),
        ([], "must be an object"),
    ],
)
def test_a_wrong_block_applies_nothing(memory: MemoryManager, block: Any, said: str) -> None:
    before = memory.seq
    good = {"recall": {"content": "x"}} if isinstance(block, dict) and "recall" not in block else {}
    with pytest.raises(InvalidUpdate) as caught:
        memory.apply_llm_memory_updates("a", {**good, **block} if good else block)
    assert said in str(caught.value)
    assert memory.seq == before


@pytest.mark.parametrize(
    ("block", "same"),
    [
        ({"mem_core_set": {"key": "best", "value": "8"}}, {"core": {"best": "8"}}),
        ({"mem_core_set": {"key": "best", "value": {"x": 1}, "importance": "5", "ttl": "2h"}},
         {"core": {"best": {"value": {"x": 1}, "importance": 5, "ttl": 7200}}}),
        ({"mem_core_set": [{"key": "a", "value": 1}, {"key": "b", "value": 2}]},
         {"core": {"a": 1, "b": 2}}),
        ({"mem_core_del": {"key": "a"}}, {"core_delete": ["a"]}),
        ({"mem_core_get": {"keys": ["a", "b"]}}, {"core_get": ["a", "b"]}),
        ({"mem_archival_write": {"text": "t", "tags": "T"}},
         {"archival": [{"text": "t", "tags": ["T"]}]}),
        ({"mem_archival_update": {"record_id": "7", "text": "t"}},
         {"archival_update": [{"id": 7, "text": "t"}]}),
        ({"mem_recall_append": {"event": {"kind": "k", "content": "c"}}},
         {"recall": {"kind": "k", "content": "c"}}),
        ({"mem_archival_delete": {"record_id": 7}}, {"archival_delete": [7]}),
        ({"mem_recall_delete": {"ids": ["#7", 8]}}, {"recall_delete": [7, 8]}),
    ],
)  # fmt: skip
def test_an_operation_may_be_written_as_a_call(block: Any, same: Any) -> None:
    assert check_updates(block) == check_updates(same)


def test_keys_may_have_the_names_of_arguments(memory: MemoryManager) -> None:
    block = {"core": {"key": {"value": "a"}, "value": {"value": "b"}}}
    memory.apply_llm_memory_updates("a", block)
    assert memory.mem_core_get(["key", "value"], branch_id="a") == {"key": "a", "value": "b"}
    memory.apply_llm_memory_updates("b", {"mem_core_set": {"key": "only"}})
    assert memory.get_core("b", "key") == "only"
    memory.mem_node_write("b", core_updates={"key": "c", "value": {"value": "d", "importance": 2}})
    assert memory.mem_core_get(["key", "value"], branch_id="b") == {"key": "c", "value": "d"}
    assert memory["b"].core.entries()["key"].importance == 3
    assert memory["b"].core.entries()["value"].importance == 2


@pytest.mark.parametrize(
    "text",
    [
        '<memory_update"core":{"key":"v"}}/>',
        '<memory_update {"core": {"a": "1"}} />',
        '<memory_update\n{"core": {"a": "1"}}\n</memory_update>',
        '<memory_update "core": {"a": "1"}',
        "All is well.\n<memory_update",
        '{"core": {"a": "1"}}\n</memory_update>',
        '<memory_update>{"core": {"a": "1"}}</memory_update>\n<memory_update {"core": {}}/>',
        '<memory_update {"core": {}}/>\n<memory_update>{"core": {"a": "1"}}</memory_update>',
    ],
)
def test_a_block_with_an_unfinished_tag_is_malformed(text: str) -> None:
    for presence in ("optional", "required"):
        with pytest.raises(MalformedMemoryUpdateError):
            read_reply(text, presence)
    with pytest.raises(ForbiddenMemoryUpdateError):
        read_reply(text, "forbidden")


@pytest.mark.parametrize(
    "text",
    [
        "A <memory_update> block is not needed here.",
        "End with </memory_update> next time.",
        '```json\n<memory_update {"core": {}}/>\n```',
        json.dumps({"note": '<memory_update {"core": {}}/>'}),
    ],
)
def test_a_mention_of_the_tag_is_no_block(text: str) -> None:
    assert read_reply(text).body == text
    assert read_reply(text).updates is None
    inside = json.dumps({"archival": [{"text": text.replace("</memory_update>", "")}]})
    assert read_reply(f"<memory_update>{inside}</memory_update>").updates == json.loads(inside)


def test_a_block_is_applied_once_for_an_attempt(memory: MemoryManager) -> None:
    block = {"archival": [{"text": "n"}], "recall": {"content": "once"}}
    first = memory.apply_llm_memory_updates("a", block, node_id="n", attempt=1)
    again = memory.apply_llm_memory_updates("a", block, node_id="n", attempt=1)
    assert again == {**first, "already_applied": True}
    assert memory["a"].events()[0].count == 1
    memory.apply_llm_memory_updates("a", block, node_id="n", attempt=2)
    memory.apply_llm_memory_updates("a", block, node_id="n")
    assert memory["a"].events()[0].count == 3


def test_maintenance_follows_the_writes(open_rooted: Open) -> None:
    memory = open_rooted(recall_max_events=2, auto_consolidate=False)
    for n in range(5):
        memory.write_event("root", "k", f"event {n}")
    block = {"recall": {"content": "the last"}, "recall_summarize": True, "consolidate": True}
    results = memory.apply_llm_memory_updates("root", block)
    assert results["recall_summarize"] == {"status": "success", "events_consolidated": 4}
    assert results["consolidate"]["status"] == "success"
    assert has_reads(check_updates({"core_get": ["a"]}))
    assert not has_reads(check_updates({"core": {"a": "b"}}))


def written(**updates: object) -> str:
    return f"<memory_update>{json.dumps(updates)}</memory_update>"


def test_a_use_of_memory_shows_reads_writes_and_logs(memory: MemoryManager, tmp_path: Path) -> None:
    memory.write_archival("a", "use -lblas when openblas is missing", ["ERROR"])
    log = MemoryPromptLog(tmp_path / "log")
    use = NodeMemory(memory["a"], "n", log)
    assert "a faster solver" in use.shown("debug").text
    reads = written(archival_search={"query": "openblas"}, core={"seen": "1"})
    reply, is_reading = use.look(f"{reads}\n{{}}", "required")
    assert (reply.body, is_reading) == ("{}", True)
    assert memory.get_core("a", "seen") is None
    (found,) = use.adopt(reply, "debug")["archival_search"]
    assert found["text"] == "use -lblas when openblas is missing"
    assert memory.get_core("a", "seen") == "1"
    writes = written(recall={"kind": "note", "content": "linked with -lblas"})
    reply, is_reading = use.look(f'{writes}\n{{"plan": "link"}}', "required")
    assert (reply.body, is_reading) == ('{"plan": "link"}', False)
    use.adopt(reply, "debug")
    assert memory["a"].events()[0].text == "linked with -lblas"
    assert [item.task_hint for item in memory["a"].injections()] == ["debug"]
    lines = (tmp_path / "log" / "memory_operations.jsonl").read_text().splitlines()
    assert [json.loads(line)["has_read_results"] for line in lines] == [True, False]


def test_a_block_with_wrong_ids_names_all_of_them_and_writes_nothing(memory: MemoryManager) -> None:
    changes = {"archival_update": [{"id": 991, "text": "x"}], "archival_delete": [992]}
    hidden = {"recall_evict": {"ids": [993]}, "recall_delete": [994]}
    with pytest.raises(RecordNotVisible) as caught:
        memory["a"].apply({"core": {"best": "8"}, **changes, **hidden})
    lines = str(caught.value).splitlines()
    assert lines[0] == "memory_update: nothing was applied."
    paths = ["archival_update[0].id", "archival_delete[0]", "recall_evict.ids", "recall_delete[0]"]
    assert [line.split(": ")[0] for line in lines[1:]] == paths
    assert all(str(991 + n) in line for n, line in enumerate(lines[1:]))
    assert "best" not in memory["a"].core
    with pytest.raises(InvalidUpdate, match="write_event: takes no log_event"):
        memory.write_event("root", "k", "text", log_event=False)  # of the original, and no data
    assert memory["root"].events() == []


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
            lambda: memory.erase(text="nowhere", folders=5),
            lambda: memory.generate_final_memory_for_paper(path, "root"),
        ]
    for call in calls:
        with pytest.raises(InvalidUpdate) as caught:
            call()
        str(caught.value).encode()
    assert memory.verify().is_sound


def test_a_folder_in_the_place_of_a_copy_is_refused(memory: MemoryManager, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    for write in (memory.backup, memory.export, memory.write_page):
        with pytest.raises(StoreUnwritable):
            write(tmp_path / "taken")
    assert not list(tmp_path.glob("taken.*"))
