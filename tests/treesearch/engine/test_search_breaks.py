"""What breaks around one attempt does not take the run with it, and leads nowhere outside."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from search_lab import ONE, Climber, lab, opened, proposal, remembering, search

from taskweaver.cli.search.run_search import list_runs
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.node import NodeStatus

THREE = ONE | {"num_drafts": 3, "stage1_nodes": 3, "memory": False}


def blocking(run: Path, *numbers: int) -> Callable[[Any], str]:
    """Return a model in some of whose nodes the logs cannot be written."""
    calls: list[Any] = []

    def model(messages: Any) -> str:
        calls.append(messages)
        if len(calls) in numbers:
            log = run / f"logs/0-run/phase_logs/node_n{len(calls):04d}"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("in the way")
        return json.dumps(proposal({"x": len(calls)}))

    return model


def test_an_attempt_that_cannot_be_carried_out_fails_alone_and_three_stop_the_search(
    tmp_path: Path,
) -> None:
    model = blocking(tmp_path / "lab/experiments/run", 1, 2)
    first, second, third = search(lab(tmp_path), model, **THREE).state.journal.nodes
    assert (first.status, first.error.kind) == (NodeStatus.BUGGY, "InternalError")
    assert second.status is NodeStatus.BUGGY
    assert third.is_good
    model = blocking(tmp_path / "lab/experiments/none", 1, 2, 3)
    with pytest.raises(SearchError, match="3 attempts in a row could not be carried out"):
        search(tmp_path / "lab", model, name="none", **THREE)


def test_a_run_whose_memory_idea_or_log_is_gone_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = lab(tmp_path)
    run = search(project, Climber(), **ONE).places.folder
    shutil.rmtree(run / "memory")
    with pytest.raises(SearchError, match="--no-memory"):
        search(project, Climber(), resume=True)
    with opened(project, Climber(), resume=True, memory=False) as again:
        assert len(again.state.journal) == 1
    (run / "idea.md").write_bytes(b"\xff")
    with pytest.raises(SearchError, match="idea cannot be read"):
        search(project, Climber(), resume=True)
    log = run / "journal.jsonl"
    log.write_text(log.read_text().replace('"parent":null', '"parent":"n0999"'))
    list_runs(project)
    assert "n0999" in capsys.readouterr().out


def test_files_of_a_folder_that_is_gone_are_written_anew(tmp_path: Path) -> None:
    made = search(lab(tmp_path), Climber(), num_drafts=1, steps=2)
    shutil.rmtree(made.places.folder / "workspaces")

    def unchanged(prompt: Mapping[str, str]) -> str | None:
        if "Kind of attempt" not in prompt:
            return None
        same = {"coding": {}, "compile": {"build_plan": {"language": "other"}}}
        attempt = same | {"run": {"commands": ["sh try.sh"]}}
        return remembering(prompt, json.dumps({"plan": "as it is", "phase_artifacts": attempt}))

    model = Climber(fault=unchanged)
    again = search(tmp_path / "lab", model, resume=True, steps=3)
    node = again.state.journal.nodes[-1]
    assert node.error is None
    assert node.value == again.state.journal[node.parent].value
    loss = "There is no folder of the parent to take over"
    assert loss in model.prompts[-1]["Lost"]
    assert node.phases[0].message.startswith(loss)
    with MemoryManager(again.places.memory) as store:
        created = [e.text for e in store[node.branch].events() if e.kind == "node_created"]
    assert loss in created[0]


def test_a_search_that_was_stopped_before_does_not_begin(tmp_path: Path) -> None:
    with opened(lab(tmp_path), Climber()) as made:
        made.stop()
        made.run(lambda _: None)
        assert len(made.state.journal) == 0


def test_a_script_cannot_lead_the_next_one_out(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "working").mkdir(parents=True)
    (outside / "working" / "mine.txt").write_text("keep")
    code = f"""
import os
for name in ("n0002", "n0003"):
    if not os.path.lexists("../" + name):
        os.symlink({str(outside)!r}, "../" + name)
open("working/result.json", "w").write('{{"metric": 1}}')
"""

    reply = json.dumps({"plan": "out", "code": code})
    made = search(lab(tmp_path), lambda _: reply, phase_mode="single", **THREE)
    assert [node.is_good for node in made.state.journal.nodes] == [True, True, True]
    assert sorted(path.name for path in outside.rglob("*")) == ["mine.txt", "working"]
    assert (made.places.node("n0002").workspace / "experiment.py").read_text() == code
