"""Conversations of tests about files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bench.questions.in_process import Conversation, _Tables


@pytest.fixture
def about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Conversation]:
    """Begin a conversation about files with some contents, in their folder."""
    monkeypatch.chdir(tmp_path)

    def begin(files: Mapping[str, str]) -> Conversation:
        for name, text in files.items():
            (tmp_path / name).write_text(text, "utf-8")
        tables = _Tables()
        return Conversation(tuple(map(tables.listed, files)), tables)

    return begin
