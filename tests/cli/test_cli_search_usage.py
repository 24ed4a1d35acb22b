"""What ``taskweaver search`` refuses, and its help."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from test_cli_search import IDEA, ask, make

from taskweaver.cli.main import commands

WRONG_USAGE = [
    (["--plain"], "Give an idea, or --resume RUN"),
    (["idea.md", "--resume", "latest"], "Give an idea, or --resume RUN"),
    (["idea.md", "--time", "soon"], "write a time with its unit, like 8h"),
    (["idea.md", "--time", "1h30"], "write a time with its unit, like 8h"),
    (["idea.md", "--budget", "much"], "write an amount like 5"),
    (["idea.md", "--workers", "0"], "Invalid value for '--workers'"),
    (["idea.md", "--resources", "none.yaml"], "Invalid value for '--resources'"),
    (["idea.md", "--name", "../up"], "is no name of a run"),
    (["missing.md"], "There is no file missing.md"),
    (["lst"], "There is no file lst. Did you mean `search list`?"),
    (["empty.md"], "empty.md is empty"),
    (["list.json", "--idea_idx", "2"], "there is no number 2"),
    (["broken.json"], "is not JSON"),
    (["untitled.json"], "holds no idea"),
    (["latin.md"], "not UTF-8"),
    (["--resume", "latest"], "There are: none"),
    (["--resume", "x", "--name", "a", "--idea_idx", "3"], "--name and --idea_idx: only for a new"),
    (["idea.md", "--config", "none.yaml"], "There is no file none.yaml"),
    (["idea.md", "--config", "list.json"], "must be a mapping"),
    (["plain.md"], "No model is configured, and no built-in one knows this idea"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path)


def test_a_project_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    result = ask(tmp_path / "nope", "search", str(IDEA))
    assert result.exit_code == 2
    assert "There is no folder" in result.output
    assert not list(tmp_path.iterdir())
    result = ask(tmp_path, "search", "list")
    assert "is not a project" in result.output
    assert "There are no runs yet" in result.output


def test_the_help_of_the_group_shows_the_options_of_a_search() -> None:
    result = CliRunner().invoke(commands, ["search", "--help"])
    for word in ("--workers", "--steps", "--time", "--budget", "--resume", "list", "show"):
        assert word in result.output
    assert "--memory_core_max_chars" not in result.output  # hidden


def test_what_cannot_be_done_is_told_and_leaves_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    Path("idea.md").write_text(IDEA.read_text())
    Path("plain.md").write_text("just try something\n")
    Path("empty.md").write_text(" \n\n")
    Path("latin.md").write_bytes("# Größe".encode("latin-1"))
    Path("list.json").write_text('[{"Title": "a"}, {"Title": "b"}]')
    Path("broken.json").write_text("[{")
    Path("untitled.json").write_text('{"Name": "x"}')
    for arguments, reason in WRONG_USAGE:
        result = ask(project, "search", *arguments)
        assert result.exit_code in {1, 2}, (arguments, result.output)
        assert reason in " ".join(result.output.split()), (arguments, result.output)
        assert "Traceback" not in result.output
    assert not list(project.glob("experiments/*"))
    assert "no runs yet" in ask(project, "search", "list").output


def test_a_memory_belongs_to_one_run(project: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.sqlite"
    taken.write_bytes(b"somebody's")
    wrong = [
        ([str(IDEA), "--memory_db", str(taken)], "is there already, and each run has a memory"),
        ([str(IDEA), "--memory_db", str(taken / "m")], "cannot be made"),
        ([str(IDEA), "--memory_db", str(tmp_path / "m"), "--no-memory"], "has none to keep"),
    ]
    for arguments, reason in wrong:
        result = ask(project, "search", *arguments)
        assert result.exit_code == 2, (arguments, result.output)
        assert reason in " ".join(result.output.split()), (arguments, result.output)
    assert taken.read_bytes() == b"somebody's"
    assert not (tmp_path / "m").exists()
    assert not list(project.glob("experiments/*"))
