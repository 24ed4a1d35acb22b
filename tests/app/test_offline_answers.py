"""Whole rounds with the offline analyst: real prompts, real kernel, real files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.post import Post
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A session of a project as it comes, with one file."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "s.csv").write_text("Region,Count\nNorth,24\nSouth,5\n")
    (tmp_path / "taskweaver_config.json").write_text(json.dumps({"llm.api_type": "offline"}))
    with TaskWeaverApp(tmp_path, config={"execution.sandbox": "none"}) as app:
        yield app.get_session()


def ask(session: Session, words: str) -> Post:
    round_ = session.send_message(words)
    assert round_.state == "finished", words
    return round_.post_list[-1]


def test_an_edited_file_is_read_again_and_a_dead_kernel_is_told(session: Session) -> None:
    data = session.config.data_dir / "s.csv"
    assert "29" in ask(session, "sum of Count in s.csv").message
    data.write_text("Region,Count\nNorth,1000\nSouth,5\n")
    assert "1005" in ask(session, "sum of Count in s.csv").message
    data.write_text("Area,Amount\nNorth,7\nSouth,50\n")
    assert "57" in ask(session, "sum of Amount in s.csv").message
    given = session.send_message("describe s.csv", files=[{"name": "s.csv", "content": b"n\n4\n"}])
    assert "Amount" not in given.post_list[-1].message
    assert "4" in ask(session, "rows where n > 3").message
    assert "kernel died" in ask(session, "run this code: import os; os._exit(1)").message
