"""Small functions under the names of the original, and the systems the package runs on."""

from __future__ import annotations

import importlib
import io
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import taskweaver.__main__
from taskweaver import utils
from taskweaver.utils.system import platform
from taskweaver.utils.system.platform import UnsupportedPlatform, require_supported
from taskweaver.utils.text import title_line


@dataclass
class Point:
    """Something that JSON has no form for."""

    x: int


def test_data_with_dataclasses_becomes_json() -> None:
    assert json.loads(utils.json_dumps({"at": Point(1)})) == {"at": {"x": 1}}
    file = io.StringIO()
    utils.json_dump([Point(2)], file)
    assert json.loads(file.getvalue()) == [{"x": 2}]
    with pytest.raises(TypeError):
        utils.json_dumps(Point)


def test_files_modules_ids_and_digests(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "b.md").touch()
    patterns = [str(tmp_path / "*.txt"), str(tmp_path / "*.md")]
    assert utils.glob_files(patterns[0]) == [str(tmp_path / "a.txt")]
    assert utils.glob_files(patterns) == [str(tmp_path / "a.txt"), str(tmp_path / "b.md")]
    assert utils.import_module("json") is json
    assert utils.generate_md5_hash("hello") == "5d41402abc4b2a76b9719d911017c592"
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{8}", utils.create_id())
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", utils.create_id(2))


@pytest.mark.parametrize(
    ("system", "start"), [("win32", "Windows: use WSL 2"), ("sunos5", "TaskWeaver runs on Linux, ")]
)
def test_where_no_session_runs_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], system: str, start: str
) -> None:
    require_supported()
    monkeypatch.setattr(platform, "SYSTEM", system)
    with pytest.raises(SystemExit) as ended:
        taskweaver.__main__.main()
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.startswith(f"error: {start}")
    assert line.count("\n") == 1
    monkeypatch.delitem(sys.modules, "taskweaver.app", raising=False)
    with pytest.raises(UnsupportedPlatform, match=start):
        importlib.import_module("taskweaver.app")


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("\n  What is it?\nMore.", "What is it?"),
        ("Run this:\n```python\n\nx = 1\nx\n```", "x = 1"),
        ("Run this:\n```python\n# Amount per month\nx = 1\n```", "Amount per month"),
        ("## What is it?", "What is it?"),
        ("#1 of all products", "#1 of all products"),
        ("Run this:", "Run this:"),
        ("```\nonly code\n```", "only code"),
        ("``` \n```", ""),
    ],
)
def test_a_title_is_the_first_line_that_names_a_question(question: str, title: str) -> None:
    assert title_line(question) == title
