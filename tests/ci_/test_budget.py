"""The limit of the package's size in the gate."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

BUDGET = runpy.run_path(str(Path(__file__).parents[2] / ".ci" / "budget.py"))
MODULE = '''"""A docstring
of two lines; not counted."""

# Nor is a comment.
def shout(name: str) -> str:
    """Not counted."""
    return f"{name!r} is {f'{name}':>{len(name)}}" "!"
'''
TOKENS = len("def shout ( name : str ) -> str : return".split()) + len(["f-string", "string"])


@pytest.fixture
def package(tmp_path: Path) -> Path:
    inner = tmp_path / "taskweaver" / "inner"
    inner.mkdir(parents=True)
    (inner / "shout.py").write_text(MODULE)
    (inner.parent / "__init__.py").write_text("answer = 42\n")
    return tmp_path


def limit(package: Path, most: int) -> int:
    text = f"[tool.taskweaver]\nmax_tokens = {most}\n"
    (package / "pyproject.toml").write_text(text)
    code: int = BUDGET["main"](package)
    return code


def test_the_limit_is_the_most_a_package_may_have(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert limit(package, TOKENS + 3) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert limit(package, TOKENS + 2) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Remove 1 tokens. The largest folders:"
    assert [line.split() for line in lines[2:]] == [
        [str(TOKENS), "taskweaver/inner"],
        ["3", "taskweaver"],
    ]
