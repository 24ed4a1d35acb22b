"""A small run in which each promise of the design documents on a search's memory comes about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from desk import Answer, Asked, Desk, at_desk, plot_program
from search_lab import CHECKED, PLACE, Climber, proposal, remembering, search

from taskweaver.treesearch.engine.search import Search
from taskweaver.utils.files import write_yaml

_FAULTS: tuple[dict[str, Any], ...] = (
    {"compile": CHECKED | {"commands": ["exit 3"]}},
    {"run": {"commands": ["exit 4"]}},
    {"download": {"commands": ["exit 5"]}},
    {"coding": [{"path": "resources/dataset/rows/x", "content": "in a file"}]},
)
"""Sections of the drafts: each fails in another phase."""
_UPDATES: Mapping[str, Any] = {
    "core": {"best_flags": "-O3", "gone_soon": "1"},
    "core_get": ["best_flags"],
    "core_delete": ["gone_soon"],
    "archival": [{"text": "Eight threads are twice as fast.", "tags": ["THREADING"]}],
    "archival_search": {"query": "threads", "k": 3},
    "recall": {"kind": "discovery", "content": "Found the best flags."},
    "recall_search": {"query": "flags", "k": 3},
    "recall_evict": {"kind": "discovery"},
    "recall_summarize": True,
    "consolidate": True,
}
"""All operations of a reply."""
_PLAN = {
    "plan": {"goal_summary": "go up", "phase1": {"commands": []}},
    "internal": {"environment_analysis": "two cores", "constraints": ["no network"]},
}
_REVIEW = {"is_bug": False, "summary": "It ran.", "findings": "up", "next_steps": "on"}
_VISION = {"plot_analyses": [], "valid_plots_received": True, "vlm_feedback_summary": "it rises"}
_SETTINGS: dict[str, Any] = {
    "phase0": "node", "review": True, "summaries": True, "plots": True, "num_drafts": 4,
    "stage1_nodes": 5, "stage2_nodes": 1, "stage3_nodes": 1, "stage4_nodes": 1, "num_seeds": 0,
    "vlm_alias": "eye",
}  # fmt: skip


class _Drafts(Climber):
    """A model whose drafts fail in a phase each."""

    def attempt(self, prompt: Mapping[str, str]) -> dict[str, Any]:
        if prompt["Kind of attempt"].startswith("draft"):
            drafts = prompt.get("Other attempts", "").count(" draft:")
            return proposal(PLACE, **({"compile": CHECKED} | _FAULTS[drafts]))
        made = super().attempt(prompt)
        made["phase_artifacts"]["download"] = {"commands": [f"echo {made['plan']!r}"]}
        return made


class _SeedDesk(Desk):
    """A desk whose attempts use each operation of the memory, then answer what they read."""

    def _reply(self, asked: Asked, body: Mapping[str, Any]) -> str | int:
        if asked.step != "attempt":
            return super()._reply(asked, body)
        has_read = "Memory Read Results" in asked.prompt
        text = json.dumps(self._climber.attempt(asked.prompt))
        return remembering(asked.prompt, text, {} if has_read else _UPDATES)


def seed_run(folder: Path, calls: str) -> tuple[Search, Desk]:
    """Search to the end in one way of asking, and write the results."""
    answers: dict[str, Answer] = {
        "plan": lambda a: remembering(a.prompt, json.dumps(_PLAN), {"core": {"planned": "yes"}}),
        "assessment": lambda _: json.dumps({**_REVIEW, "plots": True}),
        "plotting": lambda _: plot_program("height.png"),
        "vision": lambda _: json.dumps(_VISION),
        "stage summary": lambda a: None if a.is_memory else '{"summary": "well"}',
    }
    data = folder / "data"
    data.mkdir()
    (data / "rows.csv").write_text("a,b\n1,2\n")
    local = {"name": "host", "host_path": str(data), "mount_path": "/workspace/shown/host"}
    item = {"name": "rows", "class": "dataset", "source": "local", "resource": "host"}
    resources = folder / "resources.yaml"
    write_yaml(resources, {"local": [local], "items": [item | {"path": "rows.csv"}]})
    desk = _SeedDesk(answers, _Drafts(compile=CHECKED))
    with at_desk(folder, desk) as (project, _):
        settings = _SETTINGS | {"resources": str(resources), "calls": calls}
        return search(project, None, report=True, **settings), desk
