"""Ideas, Phase 0, the machine and resources, taken in once and without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from memories import Open

from taskweaver.memory.branched import InvalidUpdate, MemoryConfig, MemoryManager
from taskweaver.memory.branched.run.ingest import (
    NOT_PROVIDED,
    ingest_environment,
    ingest_idea_md,
    ingest_phase0_internal_info,
    summarize_idea,
)
from taskweaver.memory.branched.run.resources import (
    build_resource_snapshot,
    track_resource_usage,
    update_resource_snapshot_if_changed,
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


def test_an_idea_is_taken_in_once_and_inherited(memory: MemoryManager, tmp_path: Path) -> None:
    path = tmp_path / "idea.md"
    path.write_text(IDEA, "utf-8")
    assert ingest_idea_md(memory["root"], path)
    then = memory.seq
    assert not ingest_idea_md(memory["root"], path)
    assert memory.seq == then
    summary = memory.get_core("root", "idea_md_summary") or ""
    assert summary == (
        "- Purpose: Make the heat solver twice as fast.\n- Hypothesis: Cache blocking helps ☃.\n"
        f"- Method/Variables: Vary the block size.\n- Evaluation: {NOT_PROVIDED}\n"
        "- Known failures/mitigations: Small caches."
    )
    (record,) = memory["root"].records(tags=["IDEA_MD", "ROOT_IDEA"])
    assert record.text == f"{summary}\n\n{IDEA}"
    memory.fork("root", "node")
    assert "Cache blocking" in memory.render_for_prompt("node")
    assert "idea_md_hash" not in memory.render_for_prompt("node")


@pytest.mark.parametrize("content", [None, b"  \n", b"\xff\xfe", b"a\0b"])
def test_an_idea_must_be_a_text(memory: MemoryManager, tmp_path: Path, content: Any) -> None:
    path = tmp_path / "idea.md"
    if content is not None:
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
    source: dict[str, Any] = {"artifact_paths": [tmp_path / "plan.json"], "command": "lscpu"}
    assert ingest_phase0_internal_info(memory["root"], payload, **source)
    assert not ingest_phase0_internal_info(memory["root"], payload, **source)
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
    gone = [tmp_path / "gone.txt"]
    with pytest.raises(InvalidUpdate, match=r"gone\.txt"):
        ingest_phase0_internal_info(memory["root"], {"x": 1}, artifact_paths=gone)


def test_the_machine_is_taken_in_once(memory: MemoryManager) -> None:
    facts = {"cpu": "one", "cpus": 8, "memory_mib": 2048, "load": "3 tasks"}
    assert ingest_environment(memory["root"], facts)
    assert not ingest_environment(memory["root"], {**facts, "load": "another"})
    assert memory.mem_core_get()["hardware_cpu"] == "one, 8 usable, 2 GiB"
    assert ingest_environment(memory["root"], {"cpu": "another", "gpus": ["A", "B"]})
    assert memory.mem_core_get()["hardware_gpu"] == "A; B"
    assert len(memory["root"].records(tags=["ENVIRONMENT"])) == 1


@pytest.fixture
def listed(tmp_path: Path) -> dict[str, Any]:
    code = tmp_path / "host" / "code"
    code.mkdir(parents=True)
    (code / "main.c").write_text("int main(void) { return 0; }\n")
    (code / "big.py").write_text("".join(f"line_{n} = {n}\n" for n in range(2000)))
    (code / "data.bin").write_bytes(b"\0\1\2" * 100)
    (code / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "secret.txt").write_text("outside")
    (code / "link.txt").symlink_to(tmp_path / "secret.txt")
    return {
        "local": [{"name": "code", "host_path": str(code), "mount_path": "/workspace/code"}],
        "github": [{"name": "lib", "repo": "a/b", "ref": "v1", "dest": "/workspace/lib"}],
        "items": [
            {"name": "base", "class": "template", "source": "local", "resource": "code"},
            {"name": "blas", "class": "library", "source": "github", "resource": "lib",
             "notes": "linked statically", "include_tree": True},
        ],
    }  # fmt: skip


def write(folder: Path, data: Any) -> Path:
    path = folder / "resources.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def test_items_are_seen_and_quoted_within_bounds(tmp_path: Path, listed: dict[str, Any]) -> None:
    snapshot = build_resource_snapshot(write(tmp_path, listed), tmp_path / "ws")
    blas, base = snapshot.items
    assert (blas.availability, blas.fetch_status) == ("pending_fetch", "pending")
    assert (base.availability, base.container_path) == ("available", "/workspace/code")
    assert "main.c" in base.tree
    assert "int main" in base.content
    assert "Summary:\nline_0 = 0" in base.content
    assert len(base.content) < 12_500
    assert "outside" not in base.content
    assert "\0" not in base.content
    again = build_resource_snapshot(write(tmp_path, listed), tmp_path / "ws")
    assert again.resource_digest == snapshot.resource_digest


def test_a_snapshot_is_kept_once_and_again_when_something_was_fetched(
    memory: MemoryManager, tmp_path: Path, listed: dict[str, Any]
) -> None:
    path, workspace = write(tmp_path, listed), tmp_path / "ws"
    options = {"folder": tmp_path}
    assert update_resource_snapshot_if_changed(memory["root"], path, workspace, **options)
    then = memory.seq
    assert not update_resource_snapshot_if_changed(memory["root"], path, workspace, **options)
    assert memory.seq == then
    memory.fork("root", "node")
    shown = memory.render_for_prompt("node", task="statically linked blas")
    assert shown.startswith("Resource Index:")
    assert "library/blas (github:lib) pending at /workspace/lib: linked statically" in shown
    assert "Resource Memory:" in shown
    (workspace / "lib").mkdir(parents=True)
    (workspace / "lib" / "blas.h").write_text("void dgemm(void);\n")
    assert update_resource_snapshot_if_changed(memory["root"], path, workspace, **options)
    records = memory["root"].records(tags=["RESOURCE_ITEM"])
    assert len(records) == 2
    (blas,) = memory["root"].records(tags=["resource:library:blas"])
    assert "Status: available" in blas.text
    assert "blas.h" in blas.text
    assert "previous_digest" in (memory.get_core("root", "RESOURCE_INDEX") or "")
    kept = json.loads((tmp_path / "resource_snapshot.json").read_text())
    assert [item["fetch_status"] for item in kept["items"]] == ["available", "available"]


def test_use_is_noted_once(memory: MemoryManager, tmp_path: Path, listed: dict[str, Any]) -> None:
    update_resource_snapshot_if_changed(memory["root"], write(tmp_path, listed), tmp_path / "ws")
    assert track_resource_usage(memory["root"], "blas", note="draft")
    assert not track_resource_usage(memory["root"], "library:blas:github:lib:.")
    assert memory.root.events()[0].text == "library:blas:github:lib:. | draft"
    with pytest.raises(InvalidUpdate, match="0 of the items"):
        track_resource_usage(memory["root"], "nothing")


WRONG: dict[str, Any] = {
    "no field extra": lambda data: data.update(extra=1),
    "items: must be a list": lambda data: data.update(items={}),
    "local[0].host_path": lambda data: data["local"][0].update(host_path="/no/such"),
    "github[0].repo": lambda data: data["github"][0].update(repo="no repository"),
    "github[0].ref": lambda data: data["github"][0].update(ref=1.10),
    "in each other's way": lambda data: data["github"].append(
        {"name": "in", "repo": "a/c", "dest": "/workspace/lib/in"}
    ),
    "github[0].dest": lambda data: data["github"][0].update(dest="/workspace/../etc"),
    "items[0].class": lambda data: data["items"][0].update({"class": "toy"}),
    "items[0].path": lambda data: data["items"][0].update(path="../x"),
    "items[0].resource": lambda data: data["items"][0].update(resource="none"),
    "items[0].max_files": lambda data: data["items"][0].update(max_files=-1),
    "twice": lambda data: data["items"].append(dict(data["items"][0])),
}


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_entry_is_named(
    memory: MemoryManager, tmp_path: Path, listed: dict[str, Any], said: str
) -> None:
    WRONG[said](listed)
    before = memory.seq
    with pytest.raises(InvalidUpdate) as caught:
        update_resource_snapshot_if_changed(memory["root"], write(tmp_path, listed), tmp_path)
    assert said in str(caught.value)
    assert memory.seq == before


@pytest.mark.parametrize("text", ["- 1", "a: [", "", "a: !!bool maybe"])
def test_a_file_that_is_no_list_of_resources_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "resources.yaml"
    path.write_text(text)
    with pytest.raises(InvalidUpdate, match=r"resources\.yaml"):
        build_resource_snapshot(path, tmp_path)


def test_summaries_of_sources_have_budgets(open_memory: Open, tmp_path: Path) -> None:
    budgets = {"idea_summary": 200, "idea_section_limit": 40, "phase0_summary": 50}
    memory = open_memory(section_budgets={**MemoryConfig().section_budgets, **budgets})
    root = memory.create("root")
    path = tmp_path / "idea.md"
    path.write_text("# Title\n\n" + "".join(f"- {'words ' * 40}\n" for _ in "abcdef"))
    ingest_idea_md(root, path)
    summary = root.core["idea_md_summary"]
    assert len(summary) <= 200
    assert max(len(line) for line in summary.splitlines()) <= 45
    ingest_phase0_internal_info(root, {"plan": "x" * 500})
    assert len(root.core["phase0_summary"]) <= 50
