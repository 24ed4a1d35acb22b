"""Whole rounds with the offline analyst: real prompts, real kernel, real files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

TABLE = pd.DataFrame(
    {
        "Order Date": ["2024-01-03", "2024-01-20", "2024-02-11", "2025-02-01", "2025-03-09", None],
        "Region": ["North", "South", "North", "East", "North", "South"],
        "Count": [3, 5, 8, 2, 7, 4],
    }
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A session of a project as it comes, with one file."""
    (tmp_path / "data").mkdir()
    TABLE.to_csv(tmp_path / "data" / "s.csv", index=False)
    (tmp_path / "taskweaver_config.json").write_text(json.dumps({"llm.api_type": "offline"}))
    with TaskWeaverApp(tmp_path, config={"execution.sandbox": "none"}) as app:
        yield app.get_session()


def ask(session: Session, words: str) -> Post:
    round_ = session.send_message(words)
    assert round_.state == "finished", words
    return round_.post_list[-1]


def stop(post: Post) -> str:
    return str(post.get_attachment(AttachmentType.stop)[0].content)


def rows(post: Post) -> list[list[str]]:
    return [line.split() for line in post.message.splitlines()]


def test_a_request_is_computed_and_drawn_and_follow_ups_change_it(session: Session) -> None:
    answer = ask(session, "what is the mean of the Count column per month in s.csv, and plot it")
    assert stop(answer) == "Completed"
    dated = TABLE.dropna(subset=["Order Date"])
    expected = dated.groupby(dated["Order Date"].str[:7])["Count"].mean()
    for month, value in expected.items():
        assert [month, f"{value:.1f}"] in rows(answer)
    (name,) = (p.name for p in session.execution_cwd.glob("*.png"))
    assert name in answer.message
    ask(session, "mean of Count by Region in s.csv")
    assert ["North", "8"] in rows(ask(session, "and now the maximum"))
    assert ["North", "7"] in rows(ask(session, "only in 2025"))
    refused = ask(session, "write a poem about the sea")
    assert stop(refused) == "TaskFailure"
    assert "offline analyst" in refused.message
    assert "LLM_API_KEY" in refused.message
    assert stop(ask(session, "help")) == "Completed"
    assert "kernel died" in ask(session, "run this code: import os; os._exit(1)").message


def test_an_edited_file_is_read_again(session: Session) -> None:
    data = session.config.data_dir / "s.csv"
    assert "29" in ask(session, "sum of Count in s.csv").message
    data.write_text("Region,Count\nNorth,1000\nSouth,5\n")
    assert "1005" in ask(session, "sum of Count in s.csv").message
    data.write_text("Area,Amount\nNorth,7\nSouth,50\n")
    assert "57" in ask(session, "sum of Amount in s.csv").message
    given = session.send_message("describe s.csv", files=[{"name": "s.csv", "content": b"n\n4\n"}])
    assert "Amount" not in given.post_list[-1].message
    assert "4" in ask(session, "rows where n > 3").message
