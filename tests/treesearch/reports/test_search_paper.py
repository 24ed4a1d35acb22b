"""The final memory of a whole search, as the author of a paper reads it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from search_lab import CHECKED, FULL, ONE, Climber, is_draft, lab, search, trying

from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.engine.search import Search

SETTINGS = FULL | {
    "num_drafts": 3, "stage1_nodes": 3, "stage2_nodes": 2, "stage3_nodes": 2, "stage4_nodes": 1,
}  # fmt: skip
_SOURCES = re.compile(r" \[((?:node|event|record|core|branch|idea\.md|journal\.json).*)\]\Z")


@dataclass(frozen=True)
class Paper:
    """A search with its final memory, as text and as lines by section."""

    made: Search
    text: str
    sections: Mapping[str, list[str]]


def failing(*drafts: int) -> Climber:
    """Return a model some of whose drafts do not compile."""
    numbers = iter(range(1, 100))

    def fault(prompt: Mapping[str, str]) -> str | None:
        if not is_draft(prompt) or next(numbers) not in drafts:
            return None
        return trying(prompt, compile=CHECKED | {"commands": ["echo no such unit >&2; exit 3"]})

    return Climber(fault=fault)


def searched(folder: Path, model: Climber, **settings: object) -> Paper:
    made = search(lab(folder), model, report=True, **{**SETTINGS, **settings})
    home = made.places.folder / "memory"
    data = json.loads((home / "final_memory_for_paper.json").read_text())
    sections = {name: text.splitlines() for name, text in data["sections"].items()}
    return Paper(made, (home / "final_memory_for_paper.md").read_text(), sections)


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Paper:
    """Ten nodes; the second fails, and the third proposes the program of the first."""
    return searched(tmp_path_factory.mktemp("paper"), failing(2))


def below(text: str, heading: str) -> list[str]:
    """Return the lines below a heading of the second level."""
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].strip().splitlines()


def test_its_summary_has_metric_baseline_and_counts(paper: Paper) -> None:
    journal = paper.made.state.journal
    best = journal.best()
    assert (len(journal), len(journal.good), len(journal.buggy)) == (10, 9, 1)
    first, baseline, gain, counts, sure, *_ = below(paper.text, "Executive Summary")
    assert first.startswith("- Best: height (higher is better): 31 (n = 2, all equal)")
    assert f"by node {best.id} ({best.kind} {best.name}) [node {best.id}; event " in first
    assert baseline.startswith("- Baseline: height (higher is better): 0 (n = 2, all equal)")
    assert "by node n0001 (draft) [node n0001; event " in baseline
    assert gain == f"- Gain over the baseline: +31 [node {best.id}]"
    assert sure.startswith("- Repeated programs gave the very same figures (")
    assert counts.startswith("- 10 nodes: 9 good, 1 failed [journal.json; event ")


def test_it_has_the_best_node_the_top_nodes_and_what_failed(paper: Paper) -> None:
    journal = paper.made.state.journal
    best, *others = journal.leaders(5)
    details = below(paper.text, "Best Node Details")
    source = f"[node {best.id}]"
    assert f"- Plan: {best.name}: {best.plan} {source}" in details
    assert f"- Changed from {best.parent}: {best.name}; try.sh (+2 -2 lines) {source}" in details
    assert f"- Parameters: x=3, y=1 {source}" in details
    assert f"- Commands, run: sh try.sh {source}" in details
    assert '+{"metric": 31.0}' in details
    rows = below(paper.text, "Top Nodes Comparison")[2:]
    assert len(rows) == 1 + len(others)
    assert f"| 1 | {best.id} (" in rows[0]
    assert "see Best Node Details" in rows[0]
    for rank, (row, node) in enumerate(zip(rows[1:], others, strict=True), start=2):
        assert row.startswith(f"| {rank} | {node.id} ({node.kind}")
        assert f"height (higher is better): {journal.objective.text(journal.rank(node.id))}" in row
        assert f"node {node.id}; event " in row
        assert node.parent is None or f"from {node.parent}: " in row
    feedback = below(paper.text, "Execution Feedback")
    assert any(line.startswith("- Phase run: ok, ") for line in feedback)
    assert any(line.startswith("- Exec time feedback: ") for line in feedback)
    (failed,) = paper.made.state.journal.buggy
    (line,) = paper.sections["failure_modes_timeline"]
    assert line.startswith(f"- {failed.id}: draft failed: CompilationError: compile: ")
    assert "no such unit" in line
    assert (line.count("event "), line.count("record ")) == (2, 2)
    assert "n0002" in "\n".join(below(paper.text, "Negative Results & Lessons Learned"))
    assert sum("exit status 3" in line for line in paper.text.splitlines()) == 1


def test_every_line_has_a_source_and_stands_once(paper: Paper) -> None:
    lines = [line for line in paper.text.splitlines() if line.startswith("- ")]
    assert len(lines) > 30
    assert [line for line in lines if not _SOURCES.search(line)] == []
    texts = Counter(_SOURCES.sub("", line) for line in lines)
    assert set(texts.values()) == {1}
    seen = [source for line in lines if (found := _SOURCES.search(line)) for source in
            found[1].split("; ") if source.startswith(("event", "record"))]  # fmt: skip
    with MemoryManager(paper.made.places.memory) as store:
        own = {
            f"{name}, {branch.id}"
            for branch in store.branches()
            for name in (
                *(f"event {event.seq}" for event in store[branch.id].events()),
                *(f"record {record.id}" for record in store[branch.id].records()),
            )
        }
    assert seen
    assert set(seen) <= own


def test_a_run_without_result_leaves_its_failures(tmp_path: Path) -> None:
    made = searched(tmp_path, failing(1, 2, 3), **ONE | {"stage1_nodes": 2, "num_drafts": 2})
    assert made.made.state.journal.best() is None
    failures = made.sections["failure_modes_timeline"]
    assert [line[2:7] for line in failures] == ["n0001", "n0002"]
    assert below(made.text, "Executive Summary")[0].startswith("- 2 nodes: 0 good, 2 failed [")
    assert below(made.text, "Provenance Chain") == ["root"]
