"""Ideas, Phase 0 and the machine, taken in once and without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskweaver.memory.branched import InvalidUpdate, MemoryManager
from taskweaver.memory.branched.run.ingest import (
    NOT_PROVIDED,
    ingest_environment,
    ingest_idea_md,
    ingest_phase0_internal_info,
    summarize_idea,
)

IDEA = """# A faster solver

## Abstract
Make the heat solver
twice as fast.

## Short Hypothesis
Cache blocking helps ☃.

## Experiments
Vary the block size.

## Risk Factors And Limitations
Small caches.
"""


def test_an_idea_is_taken_in_once_on_the_root_and_inherited(
    memory: MemoryManager, tmp_path: Path
) -> None:
    path = tmp_path / "idea.md"
    path.write_text(IDEA, "utf-8")
    assert ingest_idea_md(memory["root"], path)
    then = memory.seq
    assert not ingest_idea_md(memory["root"], path)
    assert memory.seq == then
    summary = memory.get_core("root", "idea_md_summary") or ""
    assert summary.splitlines() == [
        "- Purpose: Make the heat solver twice as fast.",
        "- Hypothesis: Cache blocking helps ☃.",
        "- Method/Variables: Vary the block size.",
        f"- Evaluation: {NOT_PROVIDED}",
        "- Known failures/mitigations: Small caches.",
    ]
    (record,) = memory["root"].records(tags=["IDEA_MD", "ROOT_IDEA"])
    assert record.text == f"{summary}\n\n{IDEA}"
    memory.fork("root", "node")
    assert "Cache blocking" in memory.render_for_prompt("node")
    assert "idea_md_hash" not in memory.render_for_prompt("node")


def test_a_changed_idea_updates_what_is_there(memory: MemoryManager, tmp_path: Path) -> None:
    path = tmp_path / "idea.md"
    path.write_text(IDEA)
    ingest_idea_md(memory["root"], path)
    path.write_text(IDEA.replace("twice", "three times"))
    assert ingest_idea_md(memory["root"], path)
    (record,) = memory["root"].records(tags=["IDEA_MD"])
    assert "three times" in record.text
    assert "three times" in (memory.get_core("root", "idea_md_summary") or "")


def test_a_node_may_have_an_idea_of_its_own(memory: MemoryManager, tmp_path: Path) -> None:
    (tmp_path / "idea.md").write_text(IDEA)
    ingest_idea_md(memory["a"], tmp_path / "idea.md", node_uid="n7")
    (record,) = memory["a"].records(tags=["IDEA_MD"])
    assert "node_uid:n7" in record.tags
    assert memory["b"].records(tags=["IDEA_MD"]) == []


@pytest.mark.parametrize("content", [None, b"", b"  \n", b"\xff\xfe", b"a\0b", "folder"])
def test_an_idea_that_is_no_text_is_refused(
    memory: MemoryManager, tmp_path: Path, content: Any
) -> None:
    path = tmp_path / "idea.md"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    before = memory.seq
    with pytest.raises(InvalidUpdate, match=r"idea\.md"):
        ingest_idea_md(memory["root"], path)
    assert memory.seq == before


@given(st.text(), st.integers(50, 400))
def test_any_summary_keeps_its_budget(content: str, budget: int) -> None:
    budgets = {"idea_summary": budget, "idea_section_limit": 40}
    assert len(summarize_idea(content, budgets)) <= budget


def test_phase0_is_taken_in_once_with_its_files(memory: MemoryManager, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("long " * 3000)
    payload = {"plan": {"goal_summary": "fast", "deps": ["numpy", "blas"]}, "cpu": {"cores": 8}}
    files = [tmp_path / "plan.json"]
    assert ingest_phase0_internal_info(
        memory["root"], payload, artifact_paths=files, command="lscpu"
    )
    assert not ingest_phase0_internal_info(
        memory["root"], payload, artifact_paths=files, command="lscpu"
    )
    summary = memory.get_core("root", "phase0_summary")
    assert summary == "plan.goal_summary=fast | plan.deps=numpy, blas | cpu.cores=8 | command=lscpu"
    (record,) = memory["root"].records(tags=["PHASE0_INTERNAL"])
    assert '"cores": 8' in record.text
    assert "## plan.json\nlong" in record.text
    assert len(record.text) < 6000
    payload["cpu"] = {"cores": 16}
    assert ingest_phase0_internal_info(memory["root"], payload)
    assert len(memory["root"].records(tags=["PHASE0_INTERNAL"])) == 1
    with pytest.raises(InvalidUpdate, match="payload"):
        ingest_phase0_internal_info(memory["root"], {"x": object()})
    with pytest.raises(InvalidUpdate, match=r"gone\.txt"):
        ingest_phase0_internal_info(
            memory["root"], {"x": 1}, artifact_paths=[tmp_path / "gone.txt"]
        )


def test_the_machine_is_taken_in_once(memory: MemoryManager) -> None:
    facts = {"cpu": "one", "cpus": 8, "memory_mib": 2048, "load": "3 tasks"}
    assert ingest_environment(memory["root"], facts)
    assert not ingest_environment(memory["root"], {**facts, "load": "another"})
    assert memory.mem_core_get()["hardware_cpu"] == "one, 8 usable, 2 GiB"
    assert ingest_environment(memory["root"], {"cpu": "another", "gpus": ["A", "B"]})
    assert memory.mem_core_get()["hardware_gpu"] == "A; B"
    assert len(memory["root"].records(tags=["ENVIRONMENT"])) == 1
