"""The form in which a journal keeps the artifacts of its nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from search_lab import Climber, lab, search

from taskweaver.treesearch.model.artifacts import (
    UnreadArtifacts,
    artifact_commands,
    artifact_files,
    read_artifacts,
)
from taskweaver.treesearch.model.node import Node

SMALL = {
    "stage1_nodes": 1,
    "num_drafts": 1,
    "stage2_nodes": 0,
    "stage3_nodes": 0,
    "stage4_nodes": 0,
}


@pytest.mark.parametrize(
    "data", [{}, {"run": {"commands": ["a\0"]}}, {"phase_artifacts": 7}], ids=str
)
def test_what_cannot_be_carried_out_is_kept_as_it_is(data: dict[str, Any]) -> None:
    found = read_artifacts(data)
    assert isinstance(found, UnreadArtifacts)
    assert found.problem
    assert found.to_dict() == data
    assert artifact_files(found) == {}
    assert not any(artifact_commands(found).values())


def test_files_of_an_unread_plan_are_shown() -> None:
    files = [{"path": "a.py", "content": "x = 1"}, {"path": "b.py"}, "c.py"]
    found = read_artifacts({"coding": {"workspace": {"files": files}}})
    assert artifact_files(found) == {"a.py": "x = 1", "b.py": ""}


def test_a_log_with_plans_of_another_time_is_gone_on_with(tmp_path: Path) -> None:
    """Its best node cannot be run again with another seed, which says why."""
    project = lab(tmp_path)
    made = search(project, Climber(), num_seeds=0, **SMALL)
    log = made.places.log
    kept: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    for entry in kept:
        if "node" in entry:
            again = Node.from_dict(entry["node"])
            assert json.dumps(again.to_dict()) == json.dumps(entry["node"])
    entries = [entry for entry in kept if entry["t"] in {"run", "stage", "node"}]
    for entry in entries:
        if "node" in entry and entry["node"]["artifacts"]:
            del entry["node"]["artifacts"]["run"]
    log.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    resumed = search(project, Climber(), resume=True, num_seeds=1, **SMALL)
    (seed,) = resumed.state.journal.repetitions("n0001")
    assert seed.error is not None
    assert seed.error.kind == "PhasePlanError"
    assert "run.commands" in seed.error.message
