"""The guide to plugins shows what works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from taskweaver.plugin.registry import PluginRegistry

GUIDE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)\n```", GUIDE, re.DOTALL)


def test_the_plugin_of_the_guide_works_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (description,) = blocks("yaml")
    stub, code, trial = blocks("python")
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "shout.yaml").write_text(description)
    (folder / "shout.py").write_text(code)
    assert PluginRegistry(folder).plugins["shout"].format_prompt() == stub
    monkeypatch.chdir(tmp_path)
    exec(trial, {})
    assert capsys.readouterr().out.startswith("HELLO! ")
