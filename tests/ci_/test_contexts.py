"""Which lines count for a test, and which tests cover them all."""

from __future__ import annotations

from pathlib import Path

import pytest

CI = Path(__file__).parents[2] / ".ci"
SOURCE = "import os\n\nclass A:\n    a = 1\n\n    def f(self):\n        x = 1\n        return x\n"


def test_lines_of_functions_are_covered_by_few_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(CI)
    contexts = pytest.importorskip("contexts")
    (tmp_path / "a.py").write_text(SOURCE)
    assert contexts.function_lines(tmp_path / "a.py") == {7, 8}
    lines = {"a:1": ["one", "two"], "a:2": ["two"], "a:3": ["three", "two"], "a:4": ["three"]}
    assert contexts.greedy_cover(lines) == ["two", "three"]
