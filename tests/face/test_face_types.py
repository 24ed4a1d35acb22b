"""The types of the library, as a type checker finds them in a user's file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from services import SERVICES, needs_services

import taskweaver

ROOT = Path(__file__).parents[2]
USER = """
from taskweaver import TaskWeaver, TaskWeaverApp

with TaskWeaver("p", nonsense=3) as tw:
    tw.akk("x")
with TaskWeaverApp("p") as app:
    app.get_session().send_message("x").post_list[0].message.upper()
"""


def test_a_type_checker_finds_the_errors_of_a_user_and_none_in_the_guide(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "library.md").read_text("utf-8")
    codes = [USER, *re.findall(r"^```python\n(.*?)^```", guide, re.M | re.S)]
    for number, code in enumerate(codes):
        (tmp_path / f"code_{number}.py").write_text(code)
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml"]
    checked = subprocess.run(
        [*command, *map(str, tmp_path.glob("*.py"))],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert [re.sub(r".*/(code_\d+.py:\d+).*\[(.*)\]", r"\1 \2", line) for line in errors] == [
        "code_0.py:4 call-arg", "code_0.py:5 attr-defined",
    ], checked.stdout  # fmt: skip
    assert {"TaskWeaver", "TaskWeaverApp"} <= set(dir(taskweaver))


@pytest.mark.long
@needs_services
def test_the_type_checker_of_editors_finds_the_errors_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    settings = {"extraPaths": [str(ROOT)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    checked = subprocess.run(
        [SERVICES / "basedpyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = json.loads(checked.stdout)["generalDiagnostics"]
    assert [(one["range"]["start"]["line"], one["rule"]) for one in found] == [
        (3, "reportCallIssue"), (4, "reportAttributeAccessIssue"),
    ]  # fmt: skip
