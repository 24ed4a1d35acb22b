"""Rules of the house that no linter checks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "taskweaver"
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_FILE, MAX_FUNCTION = 400, 60


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_file_and_its_functions_are_short(file: Path) -> None:
    source = file.read_text(encoding="utf8")
    assert source.count("\n") <= MAX_FILE, f"{file} is over {MAX_FILE} lines: split it by purpose"
    long = [
        f"{node.name} ({node.end_lineno - node.lineno + 1})"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION
    ]
    assert not long, f"functions over {MAX_FUNCTION} lines: {', '.join(long)}"


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("__init__.py")), ids=str)
def test_an_init_defines_nothing(file: Path) -> None:
    body = ast.parse(file.read_text(encoding="utf8")).body
    defined = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert not defined
