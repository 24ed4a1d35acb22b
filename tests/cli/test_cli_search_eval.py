"""`search eval`: configurations side by side, on landscapes and on an idea."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from search_lab import FAST, IDEA, Climber, lab

from taskweaver.app.app import TaskWeaverApp
from taskweaver.app.search_evaluation import on_idea
from taskweaver.cli.main import commands

SMALL = {
    "search.steps": 4, "search.stage2_nodes": 0, "search.stage3_nodes": 0,
    "search.stage4_nodes": 0, "search.num_seeds": 1,
}  # fmt: skip


def run(project: Path, *arguments: str) -> list[str]:
    done = CliRunner().invoke(commands, ["-p", str(project), "search", "eval", *arguments])
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def configurations(folder: Path) -> list[str]:
    files = []
    for name in ("best_first", "uct"):
        file = folder / f"{name}.json"
        file.write_text(json.dumps({"search.policy": name, "search.steps": 12}))
        files.append(str(file))
    return files


def test_two_policies_stand_side_by_side(tmp_path: Path) -> None:
    project, files = lab(tmp_path), configurations(tmp_path)
    lines = run(project, *files, "--seeds", "3")
    assert lines[0].split() == ["case", "configuration", "result", "nodes", "calls", "tokens"]
    assert len(lines) == 1 + 2 * 6
    assert lines[1].startswith("families, noise 0 ")
    assert [line.split("  ")[0] for line in lines[1::2]] == [
        line.split("  ")[0] for line in lines[2::2]
    ]
    assert all("±" in line for line in lines[1:])


def test_json_lines_have_the_value_of_each_run(tmp_path: Path) -> None:
    project, files = lab(tmp_path), configurations(tmp_path)
    entries = [json.loads(line) for line in run(project, *files, "--seeds", "3", "--json")]
    assert {entry["configuration"] for entry in entries} == {"best_first", "uct"}
    for entry in entries:
        assert len(entry["values"]) == entry["runs"] == 3
        assert entry["nodes"] == 36
        assert entry["mean"] == pytest.approx(sum(entry["values"]) / 3)


@pytest.mark.parametrize("goal", ["maximize", pytest.param("minimize", marks=pytest.mark.long)])
def test_an_idea_is_searched_once_for_each_seed(tmp_path: Path, goal: str) -> None:
    project = lab(tmp_path)
    (project / "idea.md").write_text(IDEA.format(goal))
    with TaskWeaverApp(project, model=Climber()) as app:
        score = on_idea(app, FAST | SMALL, project / "idea.md", (0, 1))
    assert (score.case, score.measure, score.runs) == ("idea", "height", 2)
    assert score.values == (0.0, 0.0)
    assert score.nodes >= 6
    assert score.calls >= 6
    assert score.tokens > 0


@pytest.mark.parametrize("text", ["[1]", "{", '{"search.workers": "many"}'])
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, text: str) -> None:
    project, file = lab(tmp_path), tmp_path / "odd.json"
    file.write_text(text)
    done = CliRunner().invoke(commands, ["-p", str(project), "search", "eval", str(file)])
    assert done.exit_code == 2 or "error" in done.output.lower()
    assert "Traceback" not in done.output


def test_keys_that_landscapes_show_nothing_of_are_named(tmp_path: Path) -> None:
    project, file = lab(tmp_path), tmp_path / "seeds.json"
    file.write_text(json.dumps({"search.calls": "seeds", "search.steps": 3}))
    first, *_ = run(project, str(file), "--seeds", "1")
    assert first.startswith("search.calls: without effect on landscapes")
    assert "--idea" in first
