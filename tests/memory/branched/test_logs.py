"""The operation logs, the prompt logs, and the plans of the hot queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from memories import Open

from taskweaver.memory.branched import MemoryManager
from taskweaver.memory.branched.logs.log_lines import display_phase
from taskweaver.memory.branched.protocol.injections import MemoryPromptLog
from taskweaver.memory.branched.run.paper import generate_final_memory
from taskweaver.memory.branched.tiers import search


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_public_call_is_one_line_in_all_and_in_its_layer(
    open_memory: Open, tmp_path: Path
) -> None:
    memory = open_memory(
        memory_log_enabled=True, log_dir=tmp_path / "logs", memory_log_max_chars=50
    )
    memory.bind(memory.create_branch(None, branch_id="root"))
    memory.mem_core_set("k", "token=abcdefghijkl " + "x" * 100)
    memory.mem_recall_append({"kind": "k", "content": "said", "phase": "draft", "node_id": "root"})
    memory.apply_llm_memory_updates("root", {"core": {"a": "b"}, "core_get": ["a"]}, "n", "debug")
    memory.render_for_prompt("root", "draft")
    memory.check_memory_pressure("root")
    memory.close()
    everything = lines(tmp_path / "logs" / "memory_calls.jsonl")
    ops = [line["op"] for line in everything]
    assert ops == [
        "create_branch", "mem_core_set", "mem_recall_append", "llm_core_set", "llm_core_get",
        "apply_llm_memory_updates", "render_for_prompt", "check_memory_pressure",
    ]  # fmt: skip
    keys = {"ts", "op", "layer", "memory_type", "branch_id", "node_id", "phase", "run_id"}
    assert all(keys <= set(line) for line in everything)
    layers = {line["op"]: (line["layer"], line["memory_type"]) for line in everything}
    assert layers["mem_core_set"] == ("public_api", "core")
    assert layers["llm_core_get"] == ("llm", "llm_read")
    assert layers["render_for_prompt"] == ("system", "prompt")
    assert everything[2]["phase"] == "Phase 2: Draft Implementation"
    preview = everything[1]["details"]["value_preview"]
    assert "abcdefghijkl" not in preview
    assert len(preview) == 50
    by_layer = [
        line
        for name in ("public_api", "system", "internal", "llm")
        if (tmp_path / "logs" / f"memory_{name}.jsonl").exists()
        for line in lines(tmp_path / "logs" / f"memory_{name}.jsonl")
    ]
    assert sorted(map(str, by_layer)) == sorted(map(str, everything))


def test_each_part_of_a_write_to_a_node_is_a_line(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory(memory_log_enabled=True, log_dir=tmp_path)
    memory.create_branch(None, branch_id="root")
    event = {"kind": "run_failed", "content": "out of memory", "phase": "debug", "tags": ["OOM"]}
    memory.mem_node_write(
        "root",
        core_updates={"flags": "-O3", "goal": {"value": "faster", "importance": 5}},
        recall_event=event,
        archival_records=[{"text": "use blocks", "tags": ["PERFORMANCE"]}],
    )
    memory.close()
    found = lines(tmp_path / "memory_calls.jsonl")[1:]
    assert [line["op"] for line in found] == [
        "mem_node_write", "mem_core_set", "mem_core_set", "mem_archival_write",
        "mem_recall_append",
    ]  # fmt: skip
    marks = {(line["branch_id"], line["node_id"], line["phase"]) for line in found}
    assert marks == {("root", "root", "Phase 2: Debug")}
    assert [line["details"] for line in found] == [
        {"core_updates": ["flags", "goal"], "recall_event": True, "archival_records": 1},
        {"key": "flags", "value_preview": "-O3", "value_chars": 3},
        {"key": "goal", "value_preview": "faster", "value_chars": 6, "importance": 5},
        {"record_id": "3", "tags": ["PERFORMANCE"], "text_preview": "use blocks", "text_chars": 10},
        {"kind": "run_failed", "summary_preview": "out of memory", "tags": ["OOM"]},
    ]


def test_each_operation_of_a_block_is_a_line(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory(memory_log_enabled=True, log_dir=tmp_path)
    memory.create_branch(None, branch_id="root")
    block = {
        "mem_core_set": {"a": "1", "api_key": "hunter2-hunter2"},
        "archival": [{"text": "one", "tags": ["T"]}, {"text": "two"}],
        "recall": {"kind": "insight", "content": "said", "cause": "x"},
        "core_delete": ["a"],
        "core_get": ["a", "b"],
        "archival_search": {"query": "one", "k": 3, "tags": ["T"]},
        "consolidate": True,
    }
    memory.apply_llm_memory_updates("root", block, "n1", "draft", attempt=1)
    memory.apply_llm_memory_updates("root", block, "n1", "draft", attempt=1)
    memory.close()
    *found, whole, again = lines(tmp_path / "memory_calls.jsonl")[1:]
    operations = [line["op"].removeprefix("llm_") for line in found]
    assert operations == [
        "core_set", "core_set", "core_delete", "archival_write", "archival_write",
        "recall_append", "core_get", "core_get", "archival_search", "consolidate",
    ]  # fmt: skip
    assert {(line["node_id"], line["phase"]) for line in (*found, whole)} == {
        ("n1", "Phase 2: Draft Implementation")
    }
    details = {line["op"]: line["details"] for line in found}
    assert details["llm_recall_append"] == {
        "kind": "insight", "content": "said", "event_id": 6, "cause": "x",
    }  # fmt: skip
    assert details["llm_archival_search"] == {
        "query": "one", "k": 3, "tags_filter": ["T"], "results_count": 1, "record_ids": ["4"],
    }  # fmt: skip
    facts = whole["details"]
    assert facts["core_keys"] == ["a", "api_key"]
    assert (facts["archival_count"], facts["operations_count"]) == (2, len(operations))
    assert (facts["has_archival_search"], facts["has_recall_search"]) == (True, False)
    assert [entry["type"] for entry in facts["operations_log"]] == operations
    assert (again["op"], again["details"]["already_applied"]) == ("apply_llm_memory_updates", True)
    assert "hunter2" not in (tmp_path / "memory_calls.jsonl").read_text()


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("phase0", "Phase 0: Setup"),
        ("2_baseline_tuning", "stage_execution_2"),
        ("stage_x_summary", "stage_summary"),
        ("something else", "something else"),
        (None, None),
    ],
)
def test_phases_have_names(hint: str | None, shown: str | None) -> None:
    assert display_phase(hint) == shown


def test_what_a_prompt_was_shown_and_did_is_kept(memory: MemoryManager, tmp_path: Path) -> None:
    result = memory.render_for_prompt_with_log("a", "draft")
    memory["a"].note_injection(result, "draft")
    (kept,) = memory["a"].injections()
    assert (kept.task_hint, kept.chars) == ("draft", len(result.text))
    assert kept.shown["Core Memory"] == ["goal"]
    assert memory["a"].events() == []
    log = MemoryPromptLog(tmp_path / "prompt")
    log.injection(result, task_hint="draft", stage="s1", began=1.0)
    updates = {"core": {"k": "password: abcdefghijkl"}, "core_get": ["goal"]}
    log.operations(updates, memory.apply_llm_memory_updates("a", updates), label="coding")
    (injected,) = lines(tmp_path / "prompt" / "memory_injections.jsonl")
    assert injected["shown"]["Core Memory"] == ["goal"]
    counts = [injected[f"{tier}_count"] for tier in ("core", "recall", "archival")]
    assert counts == [1, 0, 0]
    timing = injected["timing"]
    assert timing["end_timestamp"] - timing["start_timestamp"] > timing["start_timestamp"] == 1.0
    (done,) = lines(tmp_path / "prompt" / "memory_operations.jsonl")
    assert done["has_read_results"]
    assert [entry["type"] for entry in done["operations"]] == ["core_set", "core_get"]
    assert (done["operations_count"], done["counter"], injected["counter"]) == (2, 1, 1)
    assert all(entry["timestamp"] <= done["timestamp"] for entry in done["operations"])
    assert done["read_results"] == {"core_get": {"goal": "a faster solver"}}
    assert "abcdefghijkl" not in json.dumps(done)


def test_hot_queries_use_their_indexes(
    memory: MemoryManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No table is looked through whole, and nothing that is visible is sorted."""
    for n in range(50):
        memory.write_event("a", "k", f"event {n}")
        memory.write_archival("a", f"record {n} of threads", ["T"])
        memory.set_core("a", f"k{n}", "v")
    monkeypatch.setattr(search, "_COMMON", 20)  # `record` and `threads` are common, `7` is rare
    memory.fork("a", "below")
    connection = memory._parts.database.reading
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    memory.render_for_prompt("a", "draft", task="threads")
    memory.mem_archival_search("record threads 7", tags=["T"], branch_id="below")
    memory.mem_archival_search("", tags=["T"], branch_id="below")
    memory.mem_node_read("below")
    memory.mem_recall_search("event", branch_id="a")
    memory.mem_core_get(["k1"], branch_id="a")
    connection.set_trace_callback(None)
    ours = (query for query in seen if "archival_fts_" not in query)  # not the index's own
    queries = {query for query in ours if query.lstrip().startswith(("SELECT", "WITH"))}
    assert len(queries) > 12
    assert all(any(part in query for query in queries) for part in ("bm25", "place :", "repeats"))
    for query in queries:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
        whole = [
            step
            for step in plan
            if step.startswith("SCAN")
            and not any(
                word in step
                for word in ("VIRTUAL TABLE", "line", "(subquery", "json_each", "clock")
            )
        ]
        assert not whole, f"{query}\n{plan}"
        sorts = [step for step in plan if "TEMP B-TREE" in step and "line" not in query]
        assert not sorts, f"{query}\n{plan}"


def test_a_new_name_and_a_final_memory_are_a_line_each(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory(memory_log_enabled=True, log_dir=tmp_path / "logs")
    memory.create("root")
    memory.rename_node("root", "n1")
    generate_final_memory(memory, tmp_path, "root", None)
    memory.generate_final_memory_for_paper(tmp_path, "root")
    memory.close()
    made = [(line["op"], line["branch_id"]) for line in lines(tmp_path / "logs/memory_calls.jsonl")]
    ops = [op for op, _ in made if op.startswith("update_branch")]
    assert ops == ["update_branch_node_uid"]
    assert made[-2:] == [("generate_final_memory_for_paper", "root")] * 2
