"""Two calls for an attempt, or each step alone as in the original: the same events and files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from desk import Desk, at_desk, plot_program
from search_lab import CHECKED, Climber, remembering, search

from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.engine.search import Search

SETTINGS: dict[str, Any] = {
    "phase0": "node", "review": True, "summaries": True, "plots": True, "num_drafts": 1,
    "stage1_nodes": 1, "stage2_nodes": 1, "stage3_nodes": 0, "stage4_nodes": 1, "num_seeds": 0,
}  # fmt: skip
QUESTIONS = {
    "two": ["plan", "attempt", "assessment", "plotting"],
    "seeds": [
        "plan", "attempt", "review memory", "review", "plotting", "summary memory", "summary",
    ],
}  # fmt: skip
"""The questions of a node, in order."""
CONSOLIDATION = "other"
"""The step of questions about the memory, which have no headings."""
NAMES = {
    "assessment": "agent/parallel/tasks/assessment/introduction",
    "plan": "config/phases/phase0_planning",
}
OF_A_NODE = [
    "node_created", "phase1_complete", "coding_complete", "compile_complete", "run_complete",
    "metrics_extracted", "node_summary", "node_result",
]  # fmt: skip
OF_THE_RUN = {
    "substage_complete": 3, "stage_progression": 3, "stage_summary": 3, "stage2_complete": 1,
    "stage4_complete": 1, "journal_summary": 1,
}  # fmt: skip
TAGS = {"METRICS", "NODE_SUMMARY", "SUCCESS"}
RUN_TAGS = {"STAGE_COMPLETE", "STAGE_PROGRESSION", "SUMMARY", "FINDINGS", "DATASETS_TESTED",
            "ABLATIONS", "IDEA_MD", "ROOT_IDEA"}  # fmt: skip
FILES = [
    "plans/phase0_plan.json", "plans/phase0_history_full.json", "plans/phase0_llm_output.txt",
    "prompts/phase0_prompt.json", "prompts/phase0_prompt.md",
]  # fmt: skip
LOGS = [
    "phase_logs/node_{0}/download.log", "phase_logs/node_{0}/compile.log",
    "phase_logs/node_{0}/run.log", "phase_logs/node_{0}/artifacts.json",
    "prompt_logs/node_{0}/{1}_attempt1_round0.json", "prompt_logs/node_{0}/{1}_attempt1_round0.md",
    "prompt_logs/node_{0}/memory_operations.jsonl", "prompt_logs/node_{0}/memory_injections.jsonl",
]  # fmt: skip
CALLS = ["calls", "primitive", "public_api", "system", "internal"]


class Fetching(Climber):
    """A model whose attempts fetch something first, each something else than its parent."""

    def attempt(self, prompt: Mapping[str, str]) -> dict[str, Any]:
        made = super().attempt(prompt)
        made["phase_artifacts"]["download"] = {"commands": [f"echo {made['plan']!r}"]}
        return made


@pytest.fixture(params=["seeds", pytest.param("two", marks=pytest.mark.long)])
def asked(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Search, Desk]:
    """A whole search, and the model it asked."""
    review = {"is_bug": False, "summary": "It ran.", "findings": "up", "next_steps": "on"}
    desk = Desk(
        {
            "plan": lambda a: remembering(a.prompt, '{"plan": {"goal_summary": "go up"}}'),
            "assessment": lambda _: json.dumps({**review, "plots": True}),
            "plotting": lambda _: plot_program("height.png"),
            "stage summary": lambda a: None if a.is_memory else '{"summary": "well"}',
        },
        Fetching(compile=CHECKED),
    )
    with at_desk(tmp_path, desk) as (project, _):
        for step, name in NAMES.items():
            path = project / "prompts" / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"Step: {step}\n")
        made = search(project, None, **SETTINGS, calls=request.param)
    return request.param, made, desk


def test_both_ways_leave_the_events_and_files_of_the_original(
    asked: tuple[str, Search, Desk],
) -> None:
    calls, made, desk = asked
    nodes = made.state.journal.nodes
    assert [node.kind for node in nodes] == ["draft", "hyperparam", "ablation"]
    of_nodes = [one for one in desk.asked if one.step not in {"stage summary", CONSOLIDATION}]
    steps = [f"{one.step} memory" if one.is_memory else one.step for one in of_nodes]
    assert steps == QUESTIONS[calls] * len(nodes)
    with MemoryManager(made.places.memory) as store:
        root = [event.kind for event in store["root"].events()]
        assert {kind: root.count(kind) for kind in OF_THE_RUN} == OF_THE_RUN
        assert all(store.retrieve_archival("root", "", 50, [tag]) for tag in RUN_TAGS)
        for node in nodes:
            events = reversed(store[node.branch].events())
            own = [e.kind for e in events if e.data.get("node_id") == node.id]
            assert [kind for kind in own if kind in OF_A_NODE] == OF_A_NODE
            assert all(store.retrieve_archival(node.branch, "", 50, [tag]) for tag in TAGS)
    logs = made.places.folder / "logs/0-run"
    for node in nodes:
        assert all((made.places.node(node.id).folder / name).is_file() for name in FILES)
        assert all((logs / name.format(node.id, node.kind)).is_file() for name in LOGS)
    memory = made.places.folder / "memory"
    assert all((memory / f"memory_{name}.jsonl").is_file() for name in CALLS)
