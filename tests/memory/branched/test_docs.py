"""The document says what is true: its example runs, and it shows the models' instructions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from taskweaver.config.config_mgt import env_name
from taskweaver.memory.branched import instructions

DOCUMENT = Path(__file__).parents[3] / "docs" / "memory.md"


def test_every_program_of_the_document_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(env_name("execution.zygote"), "false")  # no program starts a kernel
    programs = re.findall(
        r"```python\n(.*?)```(?:\n\nIt prints:\n\n```text\n(.*?)```)?",
        DOCUMENT.read_text("utf-8"),
        re.DOTALL,
    )
    assert any(said for _, said in programs)
    for program, said in programs:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
        printed = capsys.readouterr().out
        assert printed == said or not said


def test_the_instructions_are_shown_as_they_are() -> None:
    assert instructions() in DOCUMENT.read_text("utf-8")
