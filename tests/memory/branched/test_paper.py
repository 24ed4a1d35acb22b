"""What a run leaves behind for its paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from memories import Clock, Open

from taskweaver.memory.branched import MemoryManager, StoreUnwritable, UnknownBranch

IDEA = """# Blocking for caches

## Abstract
A faster heat solver.

## Hypothesis
Blocks that fit the cache.

## Risk Factors And Limitations
One machine only.
"""


@pytest.fixture
def run(open_memory: Open, tmp_path: Path) -> MemoryManager:
    memory = open_memory()
    memory.create_branch(None, branch_id="run", live=True)
    (tmp_path / "idea.md").write_text(IDEA)
    memory.ingest_idea_md(tmp_path / "idea.md")
    memory.ingest_environment({"cpu": "test cpu", "cpus": 8})
    memory.fork("run", "draft")
    memory.write_event("draft", "compile_failed", "ld: cannot find -lblas")
    memory.write_event("draft", "compile_failed", "ld: cannot find -lblas")
    memory.fork("draft", "best")
    memory.fork("draft", "worse")
    memory.write_event("best", "node_result", "metric=1.4 s is_buggy=False")
    memory.write_event("worse", "node_result", "metric=9 s")
    memory.write_archival("best", "64 rows fit the cache | really", ["LLM_INSIGHT"])
    return memory


INDEX: dict[str, Any] = {
    "best_node_data": {
        "id": "n2", "metric": {"value": 1.4, "name": "seconds"}, "analysis": "twice as fast",
        "code": "```\nint x;\n```\n", "plan": "block it",
    },
    "top_nodes_data": [{"id": "n2", "metric": 1.4, "analysis": "a | b"}, {"id": "n1"}],
}  # fmt: skip


def test_it_says_what_the_best_branch_knows_and_where_from(
    run: MemoryManager, tmp_path: Path
) -> None:
    found = run.generate_final_memory_for_paper(tmp_path, "run", "best", INDEX)
    assert found["provenance"] == ["best", "draft", "run"]
    assert found["title_candidates"] == "- Blocking for caches [idea.md]"
    assert found["hypothesis"] == "Blocks that fit the cache. [idea.md]"
    assert "test cpu, 8 usable [core, run]" in found["experimental_setup"]
    assert "metric=1.4 s" in found["results"]
    assert "metric=9 s" not in str(found)
    assert "- compile_failed (x2): ld: cannot find -lblas [event" in found["failure_modes_timeline"]
    assert found["resources_used"] == "(not found in memory)"
    text = (tmp_path / "memory" / "final_memory_for_paper.md").read_text()
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "Executive Summary", "Best Node Details", "VLM Analysis & Visual Feedback",
        "Top Nodes Comparison", "Memory-Based Analysis", "Resources Used", "Execution Feedback",
        "Negative Results & Lessons Learned", "Provenance Chain",
    ]  # fmt: skip
    assert "| 1 | n2 | 1.4 | a \\| b |" in text
    assert "````\n```\nint x;" in text
    assert "best -> draft -> run" in text
    data = json.loads((tmp_path / "memory" / "final_memory_for_paper.json").read_text())
    assert data["artifacts_index"] == INDEX
    assert data["core_memory"]["hardware_cpu"]["importance"] == 4


def test_the_same_memory_gives_the_same_files(
    run: MemoryManager, tmp_path: Path, clock: Clock
) -> None:
    run.generate_final_memory_for_paper(tmp_path / "one", "run", "best", INDEX)
    clock.now += 1000
    run.generate_final_memory_for_paper(tmp_path / "two", "run", "best", INDEX)
    for name in ("final_memory_for_paper.md", "final_memory_for_paper.json"):
        one, two = (tmp_path / folder / "memory" / name for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_it_can_be_limited_and_switched_off(
    run: MemoryManager, open_memory: Open, tmp_path: Path
) -> None:
    run.write_event("best", "node_result", "long " * 500)
    limited = run.generate_final_memory_for_paper(tmp_path, "run", "best", no_budget_limit=False)
    assert max(len(line) for line in limited["results"].splitlines()) < 500
    off = open_memory("off.sqlite", final_memory_enabled=False)
    off.create_branch(None, branch_id="run")
    assert off.generate_final_memory_for_paper(tmp_path / "off", "run", "run") == {}
    assert not (tmp_path / "off").exists()


def test_what_cannot_be_done_is_said(run: MemoryManager, tmp_path: Path) -> None:
    with pytest.raises(UnknownBranch):
        run.generate_final_memory_for_paper(tmp_path, "run", "nobody")
    with pytest.raises(UnknownBranch, match="descend"):
        run.generate_final_memory_for_paper(tmp_path, "worse", "best")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnwritable):
        run.generate_final_memory_for_paper(tmp_path / "file", "run", "best")


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_a_best_branch_the_root_is_taken(
    run: MemoryManager, tmp_path: Path, nothing: str | None
) -> None:
    found = run.generate_final_memory_for_paper(tmp_path, "run", nothing)
    assert found["provenance"] == ["run"]
    assert found["title_candidates"] == "- Blocking for caches [idea.md]"
