"""docs/tutorial.md: its lines are one conversation, which is saved, replayed and checked."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from blocks import ROOT, all_blocks
from click.testing import CliRunner
from support import has_bwrap, trust_project

from taskweaver.cli.main import commands


def test_the_tutorial_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LLM_API_TYPE", "offline")
    blocks = [block for block in all_blocks("chat", "sh") if block.page == "tutorial.md"]
    chat = [block.text for block in blocks if block.language == "chat"]
    before, after = (block.text.splitlines() for block in blocks if block.language == "sh")

    def run(line: str, typed: str = "") -> str:
        arguments = line.partition(" #")[0].split()[1:]
        result = CliRunner().invoke(commands, arguments, input=typed)
        assert result.exit_code == 0, f"{line}\n{result.output}"
        return result.output

    run(before[0])
    file = tmp_path / "shop" / "taskweaver_config.json"
    sandbox = "bwrap" if has_bwrap() else "none"
    file.write_text(json.dumps({"execution.sandbox": sandbox, "execution.zygote": False}))
    trust_project(tmp_path / "shop")
    typed = re.findall("^> (.*)$", "\n".join(chat), re.M)
    output = run(before[1], "\n".join(typed))
    for part in (
        "400 rows and 5 columns", "west          45204", "p1  amounts are in euros",
        "by-product  4 rounds, current", "desk           88080", "is in June",
        "now on branch-1, after 3 rounds",
    ):  # fmt: skip
        assert part in output, output
    saved, receipt = (re.findall(f"{word} (.*)$", output, re.M)[-1] for word in ("saved as", "to"))
    assert "2 cells: 2 same" in run(after[0].replace("shop/experience/raw_exp_ID.yaml", saved))
    if has_bwrap():
        assert "same" in run(after[1].replace("FILE", receipt))


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "tutorial.md"], ids=str)
def test_pictures_are_there_and_small(page: Path) -> None:
    text = page.read_text("utf-8")
    for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert 0 < (page.parent / name).stat().st_size < 150_000, name
    assert len(text.splitlines()) <= 120
