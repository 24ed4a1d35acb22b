"""What a run leaves behind as data can be read again, and is whole or not there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from search_story import OBJECTIVE, empty_run, node, read_journal, small_run, write_run

from taskweaver.treesearch.model.artifacts import read_artifacts
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.treesearch.reports.markdown_report import build_report
from taskweaver.treesearch.reports.run_data import write_best, write_outputs


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    journal, facts = small_run()
    write_run(tmp_path, journal)
    write_outputs(journal, tmp_path, facts)
    return tmp_path


def test_the_journal_and_the_summary_of_a_stage_can_be_read(run: Path) -> None:
    journal, _ = small_run()
    again = read_journal(read(run / "journal.json"))
    assert again.to_dict() == journal.to_dict()
    summary = read(run / "stage_summaries/stage_2_baseline_tuning.json")
    assert summary["nodes"] == {"total": 2, "ok": 2}
    assert (summary["base"]["node"], summary["best"]["node"]) == ("n0003", "n0004")
    assert summary["key_numbers"]["gain_over_base"] == pytest.approx(0.03)
    effects = {entry["name"]: entry["gain"] for entry in summary["tried"]}
    assert effects == {"learning rate": pytest.approx(0.03), "batch size": pytest.approx(-0.03)}
    assert [entry["best"] for entry in summary["metric_history"]] == [0.85, 0.85]


def test_costs_add_up_over_stages_and_kinds(run: Path) -> None:
    found = read(run / "costs.json")
    for key in ("nodes", "calls", "prompt_tokens", "money", "seconds"):
        whole = pytest.approx(found["total"][key])
        assert sum(stage["total"][key] for stage in found["by_stage"].values()) == whole
        assert sum(kind[key] for kind in found["by_kind"].values()) == whole
    assert found["by_stage"]["4"]["by_kind"]["seed"]["nodes"] == 3


def test_a_better_node_takes_the_place_of_the_best(run: Path) -> None:
    journal, facts = small_run()
    journal.put(node(20, NodeKind.IMPROVE, 0.99, parent="n0009", stage=3))
    write_outputs(journal, run, facts)
    assert read(run / "best/node.json")["id"] == "n0020"
    assert "LEARNING_RATE" in (run / "best/workspace/src/train.py").read_text()
    assert not list(run.glob(".*best*"))


def test_links_out_of_the_workspace_and_special_files_are_left_out(tmp_path: Path) -> None:
    journal, _ = small_run()
    write_run(tmp_path, journal)
    workspace = tmp_path / "workspaces/branches/n0009"
    (workspace / "secret").symlink_to("/etc/hostname")
    (workspace / "up").symlink_to(tmp_path, target_is_directory=True)
    (workspace / "inside").symlink_to("src/train.py")
    (workspace / "gone").symlink_to("nowhere")
    os.mkfifo(workspace / "pipe")
    target = write_best(journal, tmp_path)
    kept = sorted(str(p.relative_to(target / "workspace")) for p in target.rglob("workspace/*"))
    assert kept == ["inside", "src"]
    assert read(target / "node.json")["left_out"] == ["gone", "pipe", "secret", "up"]


def test_proposed_paths_do_not_leave_the_folder(tmp_path: Path) -> None:
    files = {"../../out.txt": "x", "/tmp/never.txt": "x", "..": "x", "good.txt": "y"}
    listed = [{"path": path, "content": text} for path, text in files.items()]
    artifacts = read_artifacts({"coding": {"workspace": {"files": listed}}})
    one = node(1, NodeKind.DRAFT, 0.5, artifacts=artifacts)
    target = write_best(Journal(OBJECTIVE, [one]), tmp_path)
    assert [path.name for path in target.rglob("*.txt")] == ["good.txt"]
    assert not (tmp_path.parent / "out.txt").exists()


def test_the_report_says_a_gain_once_and_no_minus_nothing() -> None:
    journal, facts = empty_run()
    for one in (
        node(1, NodeKind.DRAFT, 0.5),
        node(2, NodeKind.IMPROVE, 0.75, parent="n0001", stage=3),
        node(3, NodeKind.ABLATION, 0.75, parent="n0002", stage=4, name="dropout"),
        node(4, NodeKind.ABLATION, 0.7500001, parent="n0002", stage=4, name="norm"),
    ):
        journal.put(one)
    report = build_report(journal, facts)
    assert report.count("from 0.5, node n0001") == 1
    assert "| dropout | 0.75 | +0 (+0.0%) |" in report
    assert "-0.0%" not in report


def test_parts_are_worth_something_by_the_limits_of_all_differences() -> None:
    journal, facts = empty_run()
    for one in (
        node(1, NodeKind.DRAFT, 10.0),
        node(2, NodeKind.SEED, 10.4, parent="n0001", seed=1),
        node(3, NodeKind.ABLATION, 9.1, parent="n0001", stage=4, name="dropout"),
    ):
        journal.put(one)
    # Of one repetition the limits are 13 standard errors, and not 2 as of hundreds.
    row = next(line for line in build_report(journal, facts).splitlines() if "| dropout |" in line)
    assert "within the noise" in row
