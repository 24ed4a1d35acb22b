"""The guide to plugins shows what works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import make_project

from taskweaver.cli.main import commands
from taskweaver.plugin import temp_context
from taskweaver.plugin.register import collect
from taskweaver.plugin.registry import PluginRegistry

GUIDE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)\n```", GUIDE, re.DOTALL)


FILE, STUB, CLASS, CODE, STUB_OF_TWO, TRIAL = blocks("python")


def said_by(project: Path, *arguments: str) -> str:
    result = CliRunner().invoke(commands, ["--trust", "-p", str(project), "plugin", *arguments])
    assert result.exit_code == 0
    return result.output


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = make_project(tmp_path / "project")
    (folder / "plugins").mkdir()
    return folder


def test_the_plugin_of_one_file_is_described_and_tested_as_it_says(project: Path) -> None:
    (project / "plugins" / "shout.py").write_text(FILE)
    assert PluginRegistry(project / "plugins").plugins["shout"].format_prompt() == STUB
    assert said_by(project, "test", "shout").strip() == blocks("text")[0]


def test_the_class_works_and_so_does_trying_it_from_python(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "plugins" / "loud_note.py").write_text(CLASS)
    assert "1 passed" in said_by(project, "test")
    monkeypatch.chdir(project)
    exec(TRIAL, {})
    assert capsys.readouterr().out.startswith("HELLO! ")


def test_the_plugin_of_two_files_works_as_it_says(tmp_path: Path) -> None:
    (description,) = blocks("yaml")
    (tmp_path / "shout.yaml").write_text(description)
    (tmp_path / "shout.py").write_text(CODE)
    entry = PluginRegistry(tmp_path).plugins["shout"]
    assert entry.format_prompt() == STUB_OF_TWO
    with temp_context() as ctx:
        made = collect(entry.source(), "shout").factory("shout", ctx, entry.config)
        assert made("hello", times=2) == "HELLO!HELLO!"
