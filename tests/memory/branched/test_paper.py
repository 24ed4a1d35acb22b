"""What a run leaves behind for its paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from memories import Clock, Open

from taskweaver.memory.branched import InvalidUpdate, MemoryManager, StoreUnwritable, UnknownBranch

IDEA = """# Blocking for caches

## Abstract
A faster heat solver.

## Hypothesis
Blocks that fit the cache.

## Experiments
- Blocks of 16, 32 and 64 rows,
  each with one thread.
- Threads.

## Risk Factors And Limitations
One machine only.

Built-in proposer: `stencil`
"""


@pytest.fixture
def run(open_memory: Open, tmp_path: Path) -> MemoryManager:
    memory = open_memory()
    memory.create_branch(None, branch_id="run", live=True)
    (tmp_path / "idea.md").write_text(IDEA)
    memory.ingest_idea_md(tmp_path / "idea.md")
    memory.ingest_environment({"cpu": "test cpu", "cpus": 8, "numa_nodes": 2})
    memory.fork("run", "draft")
    memory.write_event("draft", "compile_failed", "ld: cannot find -lblas")
    memory.write_event("draft", "compile_failed", "ld: cannot find -lblas")
    memory.fork("draft", "best")
    memory.fork("draft", "worse")
    memory.write_event("best", "metrics_extracted", "time: 1.4 s")
    memory.write_event("best", "node_result", "metric=1.4 s is_buggy=False")
    memory.write_event("worse", "node_result", "metric=9 s")
    memory.write_event("worse", "run_failed", "Segmentation fault in line 12 of solve.c")
    memory.write_archival(
        "worse", "draft x failed: RuntimeError: Segmentation fault in line 12 of solve.c", ["ERROR"]
    )
    memory.write_event("worse", "node_result", "metric=none is_buggy=True exc_type=RuntimeError")
    memory.write_archival("best", "64 rows fit the cache | really", ["LLM_INSIGHT"])
    memory.mem_core_set("block_rows", "64", branch_id="best")
    return memory


INDEX: dict[str, Any] = {
    "counts": {"nodes": 3, "good": 2, "failed": 1},
    "best_node_data": {
        "id": "best",
        "metric": {"value": 1.4, "name": "time", "unit": "s", "direction": "minimize"},
        "analysis": "twice as fast", "code": "```\nint x;\n```\n", "plan": "block it for the cache",
        "parent": "draft", "changed": "solve.c (+3 -1 lines)", "parameters": {"rows": 64},
        "gain": "+1.4 s (+50.0%)", "exec_time_feedback": "there is time for more",
        "plot_analyses": ["it rises"], "phases": {"run": "ok, 1.4 s"},
    },
    "baseline_data": {"id": "draft", "metric": {"value": 2.8, "name": "time", "unit": "s"}},
    "top_nodes_data": [
        {"id": "best", "metric": {"value": 1.4, "name": "time"}, "plan": "block it for the cache"},
        {"id": "draft", "metric": 2.8, "analysis": "a | b", "plan": "a plain loop"},
    ],
    "failed_nodes_data": [
        {"id": "worse", "error": "Segmentation fault", "fixed_by": ["best"]},
        {"id": "lost", "error": "WorkerLost: its worker died"},
    ],
    "attempts_data": [
        {"id": "n9", "kind": "ablation", "name": "rows", "metric": 3.0, "gain": "-1.6 s",
         "compared_with": "best"},
    ],
}  # fmt: skip


def written(folder: Path) -> str:
    return (folder / "memory" / "final_memory_for_paper.md").read_text()


def below(text: str, heading: str) -> list[str]:
    """Return the lines below a heading of the second level."""
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].strip().splitlines()


def test_facts_of_the_best_branch_with_their_sources(run: MemoryManager, tmp_path: Path) -> None:
    found = run.generate_final_memory_for_paper(tmp_path, "run", "best", INDEX)
    assert found["provenance"] == ["best", "draft", "run"]
    assert found["title_candidates"] == "- Blocking for caches [idea.md]"
    assert found["hypothesis"] == "- Blocks that fit the cache. [idea.md]"
    assert found["threats_to_validity"] == "- One machine only. [idea.md]"
    assert found["method"].splitlines() == [
        "- Blocks of 16, 32 and 64 rows, each with one thread. [idea.md]",
        "- Threads. [idea.md]",
    ]
    assert "test cpu, 8 usable [core hardware_cpu, run; record" in found["experimental_setup"]
    assert "- numa_nodes: 2 [record" in found["experimental_setup"]
    assert "cpus" not in found["experimental_setup"]
    assert "metric=9 s" not in str(found)
    assert "64 rows fit the cache | really [record" in found["narrative_bullets"]
    text = written(tmp_path)
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "Executive Summary", "Best Node Details", "VLM Analysis & Visual Feedback",
        "Top Nodes Comparison", "Memory-Based Analysis", "Resources Used", "Execution Feedback",
        "Negative Results & Lessons Learned", "Provenance Chain",
    ]  # fmt: skip
    assert below(text, "Provenance Chain") == ["best -> draft -> run"]
    data = json.loads((tmp_path / "memory" / "final_memory_for_paper.json").read_text())
    assert data["artifacts_index"] == INDEX
    assert data["core_memory"]["hardware_cpu"]["importance"] == 4
    sources = [fact["sources"] for facts in data["facts"].values() for fact in facts]
    assert all(sources)


def test_its_summary_is_metric_and_baseline(run: MemoryManager, tmp_path: Path) -> None:
    run.generate_final_memory_for_paper(tmp_path, "run", "best", INDEX)
    text = written(tmp_path)
    best, baseline, gain, counts, finding = below(text, "Executive Summary")
    assert best.startswith("- Best: time (lower is better): 1.4 s, by node best [node best; event")
    assert best.count("event ") == 2
    assert baseline == "- Baseline: time 2.8 s, by node draft [node draft]"
    assert gain == "- Gain over the baseline: +1.4 s (+50.0%) [node best]"
    assert counts == "- 3 nodes: 2 good, 1 failed [journal.json]"
    assert finding == "- Finding: twice as fast [node best]"
    details = below(text, "Best Node Details")
    assert "- Plan: block it for the cache [node best]" in details
    assert "- Changed from draft: solve.c (+3 -1 lines) [node best]" in details
    assert "- Parameters: rows=64 [node best]" in details
    assert any("block_rows: 64 [core block_rows, best]" in line for line in details)
    assert "````text\n```\nint x;" in text
    header, _, first, second = below(text, "Top Nodes Comparison")
    assert header.startswith("| Rank | Node | Metric | Gain over parent | Changed from parent |")
    assert "see Best Node Details" in first
    assert second.startswith("| 2 | draft | 2.8 |")
    assert "| a plain loop | a \\| b | node draft |" in second
    phase, time = below(text, "Execution Feedback")
    assert phase == "- Phase run: ok, 1.4 s [node best]"
    assert time == "- Exec time feedback: there is time for more [node best]"
    (seen,) = below(text, "VLM Analysis & Visual Feedback")
    assert seen == "- Plot analyses: it rises [node best]"
    facts = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(facts) == len(set(facts))


def test_failures_of_all_branches_are_negative_results(run: MemoryManager, tmp_path: Path) -> None:
    found = run.generate_final_memory_for_paper(tmp_path, "run", "best", INDEX)
    compile_, fault, lost = found["failure_modes_timeline"].splitlines()
    assert compile_.startswith("- draft: compile_failed (x2): ld: cannot find -lblas [event")
    assert fault.startswith("- worse: draft x failed: RuntimeError: Segmentation fault in line 12")
    assert "(fixed by best)" in fault
    assert (fault.count("event "), fault.count("record ")) == (2, 1)
    assert lost == "- lost: WorkerLost: its worker died [node lost]"
    assert found["ablations_negative"] == "- n9 (ablation rows): 3.0, -1.6 s against best [node n9]"
    assert "### Ablations And Attempts Without Gain" in written(tmp_path)
    lines = below(written(tmp_path), "Negative Results & Lessons Learned")
    assert sum("Segmentation fault" in line for line in lines) == 1
    assert written(tmp_path).count("Segmentation fault") == 1


def test_accounts_that_differ_are_different_facts(run: MemoryManager, tmp_path: Path) -> None:
    command = "compile: `gcc -O3 -march=native -fopenmp solve.c -o solve -lm`: exit status 1"
    run.write_event("worse", "compile_failed", f"{command} undefined reference to `a'")
    run.write_event("worse", "compile_failed", f"{command} undefined reference to `b'")
    run.write_event("worse", "run_failed", "AssertionError: ")
    run.write_event("worse", "run_failed", "no result was written")
    message = f"{command} solve.c:1: " + "error: expected a semicolon; " * 60
    run.write_event("worse", "compile_failed", message[:500])
    run.write_archival("worse", f"compile failed: {message}", ["ERROR"])
    run.write_archival("worse", f"draft failed: CompilationError: {message}"[:1200], ["ERROR"])
    insights = ("x < 3 rows is faster", "x > 3 rows is faster", "行を分ける", "列を分ける")
    for text in insights:
        run.write_archival("best", text, ["LLM_INSIGHT"])
    found = run.generate_final_memory_for_paper(tmp_path, "run", "best")
    lines = found["failure_modes_timeline"].splitlines()
    differing = ("reference to `a'", "reference to `b'", "AssertionError", "no result was written")
    for part in (*differing, "semicolon"):
        (line,) = [line for line in lines if part in line]
    assert (line.count("record "), line.count("event ")) == (2, 1)
    assert all(f"- {text} [record" in found["narrative_bullets"] for text in insights)


def test_the_memory_alone_tells_best_and_baseline(run: MemoryManager, tmp_path: Path) -> None:
    run.write_event("draft", "metrics_extracted", "time: 2.8 s")
    run.fork("draft", "late")
    run.write_event("late", "metrics_extracted", "time: 1.1 s")
    run.write_event("late", "run_complete", "1 command. Outputs: result.json")
    found = run.generate_final_memory_for_paper(tmp_path, "run", "late")
    best, baseline = found["executive_summary"].splitlines()
    assert best.startswith("- Best: late: time: 1.1 s [event")
    assert baseline.startswith("- Baseline: draft: time: 2.8 s [event")
    assert found["results"] == "See Executive Summary."
    assert found["best_node_details"] == "- Branch: late, from draft [branch late]"
    assert "- Phase run: 1 command. Outputs: result.json [event" in found["execution_feedback"]
    assert "Segmentation fault" in found["failure_modes_timeline"]
    assert found["resources_used"].startswith("(not found in memory: no resource file was given")
    assert found["top_nodes_comparison"].startswith("(not found in memory: the search passed no")


def test_a_repeated_result_has_all_measurements(run: MemoryManager, tmp_path: Path) -> None:
    run.fork("best", "late")
    run.write_event("late", "metrics_extracted", "time: 1.1 s")
    index = {**INDEX, "repeated_data": {"late": "1.3 ± 0.2 s (n = 2)"}}
    found = run.generate_final_memory_for_paper(tmp_path, "run", "late", index)
    (line,) = found["results"].splitlines()
    told = "- late: time: 1.1 s All its measurements: 1.3 ± 0.2 s (n = 2) [event"
    assert line.startswith(told)


def test_a_fact_of_record_event_and_key_is_one_line(run: MemoryManager, tmp_path: Path) -> None:
    text = "Blocks of 64 rows are twice as fast as blocks of 16 rows"
    run.write_archival("best", text, ["LLM_INSIGHT"])
    run.write_archival("draft", f"{text}.", ["FINDINGS"])
    run.write_event("best", "node_summary", text)
    run.mem_core_set("lesson", text, branch_id="best")
    run.mem_core_set("mode", "fast", branch_id="best")
    run.mem_core_set("style", "fast", branch_id="best")
    found = run.generate_final_memory_for_paper(tmp_path, "run", "best")
    page = written(tmp_path)
    assert page.count("twice as fast as blocks") == 1
    (line,) = [line for line in page.splitlines() if text in line]
    assert line.startswith(f"- lesson: {text} [core lesson, best; record ")
    assert (line.count("record "), line.count("event ")) == (1, 1)
    assert "- mode: fast [" in found["best_node_details"]
    assert "- style: fast [" in found["best_node_details"]


def test_limits_and_the_switch(run: MemoryManager, open_memory: Open, tmp_path: Path) -> None:
    run.write_archival("best", "long " * 500, ["SUMMARY"])
    newest = "best"
    for number in range(70):
        run.write_event("worse", "error_encountered", f"error {number} of the solver")
        newest = run.fork(newest, f"n{number}")
        run.write_event(newest, "metrics_extracted", f"time: {number + 2} s")
    whole = run.generate_final_memory_for_paper(tmp_path, "run", newest)
    limited = run.generate_final_memory_for_paper(tmp_path, "run", newest, no_budget_limit=False)
    assert len(whole["results"].splitlines()) > 50 >= len(limited["results"].splitlines())
    assert max(len(line) for line in limited["narrative_bullets"].splitlines()) < 500
    assert len(limited["failure_modes_timeline"].splitlines()) == 50
    names = {"final_memory_filename_md": "end.md", "final_memory_filename_json": "end.json"}
    other = open_memory("other.sqlite", **names)
    other.create("run")
    other.generate_final_memory_for_paper(tmp_path / "other", "run")
    assert {path.name for path in (tmp_path / "other" / "memory").iterdir()} == {*names.values()}
    off = open_memory("off.sqlite", final_memory_enabled=False)
    off.create_branch(None, branch_id="run")
    assert off.generate_final_memory_for_paper(tmp_path / "off", "run", "run") == {}
    assert not (tmp_path / "off").exists()


def test_files_repeat_and_hold_no_secrets(run: MemoryManager, tmp_path: Path, clock: Clock) -> None:
    secret = "sk-" + "proj-" + "a1B2" * 12
    run.write_archival("best", f"the key is {secret}", ["LLM_INSIGHT"])
    for folder in ("one", "two"):
        run.generate_final_memory_for_paper(tmp_path / folder, "run", "best", INDEX)
        clock.now += 1000
    for name in ("final_memory_for_paper.md", "final_memory_for_paper.json"):
        one, two = (tmp_path / folder / "memory" / name for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
        assert secret not in one.read_text()


def test_what_cannot_be_done_is_refused(run: MemoryManager, tmp_path: Path) -> None:
    with pytest.raises(UnknownBranch):
        run.generate_final_memory_for_paper(tmp_path, "run", "nobody")
    with pytest.raises(UnknownBranch, match="descend"):
        run.generate_final_memory_for_paper(tmp_path, "worse", "best")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnwritable):
        run.generate_final_memory_for_paper(tmp_path / "file", "run", "best")


CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE


@pytest.mark.parametrize("index", [
    "text", [1], CYCLE, {(1,): 2}, {"best_node_data": "text"}, {"counts": [1]}, {"judgements": 5},
    {"top_nodes_data": "text"}, {"top_nodes_data": [None, 1]},
    {"failed_nodes_data": [{"id": "n1", "fixed_by": 5}]},
])  # fmt: skip
def test_data_of_another_form_is_refused(run: MemoryManager, tmp_path: Path, index: Any) -> None:
    with pytest.raises(InvalidUpdate, match="artifacts_index"):
        run.generate_final_memory_for_paper(tmp_path, "run", "best", index)
    assert not (tmp_path / "memory").exists()


def test_nodes_with_odd_ids_or_none_are_lines(run: MemoryManager, tmp_path: Path) -> None:
    nodes = [{}, {"id": [1]}, {"id": 7}]
    index = {"top_nodes_data": nodes, "attempts_data": nodes, 3: "x", "y": tmp_path}
    found = run.generate_final_memory_for_paper(tmp_path, "run", "best", index)
    assert len(found["top_nodes_comparison"].splitlines()) == 3
    assert "See Top Nodes Comparison too: [1], 7" in found["ablations_negative"]
