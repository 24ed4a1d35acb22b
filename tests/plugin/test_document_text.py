"""The plugin that reads documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shipped import make

from taskweaver.plugin import Plugin, temp_context


@pytest.fixture
def read() -> Iterator[Plugin]:
    with temp_context() as ctx:
        yield make("document_text", ctx)


def test_a_document_comes_back_with_a_line_about_it(read: Plugin, tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("one\ntwo\n")
    assert read(str(path)) == ("one\ntwo\n", "8 characters in 3 lines.")
    assert read(str(path), 8)[1] == "8 characters in 3 lines."
    text, description = read(str(path), max_chars=3)
    assert text == "one"
    assert description == "3 characters in 1 lines. There is more; only the beginning was read."


def test_a_document_without_text_is_told(read: Plugin, tmp_path: Path) -> None:
    path = tmp_path / "empty.md"
    path.touch()
    assert "empty.md holds no text" in read(str(path))[1]


@pytest.mark.parametrize("limit", [0, -5, True, "10", 1.5])
def test_a_limit_that_makes_no_sense_is_refused(read: Plugin, limit: Any) -> None:
    with pytest.raises(ValueError, match="max_chars must be a whole number"):
        read("any.txt", limit)
