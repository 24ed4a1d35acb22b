"""What breaks around one attempt does not take the run with it, and leads nowhere outside."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from search_lab import Climber, lab, remembering, search
from support import make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.cli.search.run_search import list_runs
from taskweaver.llm.types import ChatMessage
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.errors import SearchError
from taskweaver.treesearch.model.node import NodeStatus
from taskweaver.treesearch.record.runlog import RunState
from taskweaver.treesearch.service import resume_search, start_search

RESULT = """echo '{"metric": 1}' > working/result.json"""
ATTEMPT = {
    "plan": "try it",
    "phase_artifacts": {
        "coding": {"workspace": {"files": []}},
        "compile": {"build_plan": {"language": "other"}, "commands": []},
        "run": {"commands": [RESULT]},
    },
}
SETTINGS = {
    "search.workers": 1, "search.num_drafts": 3, "search.stage1_nodes": 3, "search.num_seeds": 0,
    "search.stage2_nodes": 0, "search.stage3_nodes": 0, "search.stage4_nodes": 0,
    "search.install": "batch", "search.phase0": False, "search.review": False,
    "search.summaries": False, "search.plots": False, "memory.enabled": False,
}  # fmt: skip
Reply = Callable[[Path, int], str]


def searched(folder: Path, reply: Reply, **settings: object) -> tuple[RunState, Path]:
    """Search, and return what it came to and the folder of the run."""
    project = make_project(folder / "lab", {})
    idea = project / "idea.md"
    idea.write_text("# Numbers\n\nMetric: height (maximize)\n")
    run = project / "experiments" / "run"
    calls: list[int] = []

    def model(messages: Sequence[ChatMessage]) -> str:
        calls.append(len(messages))
        return reply(run, len(calls))

    named = {n if "." in n else f"search.{n}": value for n, value in settings.items()}
    values = SETTINGS | named
    with (
        TaskWeaverApp(project, model=model) as app,
        start_search(app, idea, values, name="run") as search,
    ):
        assert search.places.folder == run
        search.run(lambda _: None)
        return search.state, run


def blocking(*numbers: int) -> Reply:
    """Return a model in whose nodes the logs cannot be written."""

    def reply(run: Path, number: int) -> str:
        if number in numbers:
            log = run / "logs" / "0-run" / "phase_logs" / f"node_n{number:04d}"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("in the way")
        return json.dumps(ATTEMPT)

    return reply


def test_an_attempt_that_cannot_be_carried_out_fails_alone(tmp_path: Path) -> None:
    state, _ = searched(tmp_path, blocking(1, 2))
    first, second, third = state.journal.nodes
    assert (first.status, second.status) == (NodeStatus.BUGGY, NodeStatus.BUGGY)
    assert first.error is not None
    assert first.error.kind == "InternalError"
    assert third.is_good


def test_where_no_attempt_can_be_carried_out_the_search_stops(tmp_path: Path) -> None:
    with pytest.raises(SearchError, match="3 attempts in a row could not be carried out"):
        searched(tmp_path, blocking(1, 2, 3))


def test_a_run_whose_memory_is_gone_says_how_to_go_on(tmp_path: Path) -> None:
    def reply(_run: Path, _number: int) -> str:
        return f"<memory_update>\n{{}}\n</memory_update>\n{json.dumps(ATTEMPT)}"

    _, run = searched(tmp_path, reply, **{"memory.enabled": True})
    shutil.rmtree(run / "memory")
    with TaskWeaverApp(tmp_path / "lab", model=lambda _: "") as app:
        with pytest.raises(SearchError, match="--no-memory"):
            resume_search(app, "run")
        with resume_search(app, "run", {"memory.enabled": False}) as search:
            assert len(search.state.journal) == 3


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
    assert node.parent is not None
    assert node.value == again.state.journal[node.parent].value
    loss = "There is no folder of the parent to take over"
    assert loss in model.prompts[-1]["Lost"]
    assert node.phases[0].message.startswith(loss)
    with MemoryManager(again.places.memory) as store:
        created = [e.text for e in store[node.branch].events() if e.kind == "node_created"]
    assert loss in created[0]


def test_an_idea_or_a_log_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, run = searched(tmp_path, blocking())
    log = run / "journal.jsonl"
    (run / "idea.md").write_bytes(b"\xff")
    with (
        TaskWeaverApp(tmp_path / "lab", model=lambda _: "") as app,
        pytest.raises(SearchError, match="idea cannot be read"),
    ):
        resume_search(app, "run")
    log.write_text(log.read_text().replace('"parent":null', '"parent":"n0999"'))
    list_runs(tmp_path / "lab")
    assert "n0999" in capsys.readouterr().out


def test_a_search_that_was_stopped_before_does_not_begin(tmp_path: Path) -> None:
    project = make_project(tmp_path / "lab", {})
    idea = project / "idea.md"
    idea.write_text("# Numbers\n\nMetric: height (maximize)\n")
    with (
        TaskWeaverApp(project, model=lambda _: "") as app,
        start_search(app, idea, SETTINGS) as search,
    ):
        search.stop()
        search.run(lambda _: None)
        assert len(search.state.journal) == 0


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

    def reply(_run: Path, _number: int) -> str:
        return json.dumps({"plan": "out", "code": code})

    state, run = searched(tmp_path, reply, phase_mode="single")
    assert [node.is_good for node in state.journal.nodes] == [True, True, True]
    assert sorted(path.name for path in outside.rglob("*")) == ["mine.txt", "working"]
    assert (run / "workspaces" / "branches" / "n0002" / "experiment.py").read_text() == code
