"""Whole rounds with the offline analyst: real prompts, real kernel, real files."""

from __future__ import annotations

import json
import sqlite3
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
        "Unit Price": [1.5, 2.0, 2.5, 9.0, 1.0, None],
    }
)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskWeaverApp]:
    """A project whose sessions share a warm process, which has come up."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "data").mkdir()
    (folder / "taskweaver_config.json").write_text(json.dumps({"llm.api_type": "offline"}))
    with TaskWeaverApp(folder, config={"execution.sandbox": "none"}) as app:
        with app.get_session() as first:
            ask(first, "run this code: 1")
        yield app


@pytest.fixture
def project(app: TaskWeaverApp) -> Path:
    """The project, with nothing but one file in its data folder."""
    for path in (app.app_dir / "data").iterdir():
        path.unlink()
    TABLE.to_csv(app.app_dir / "data" / "s.csv", index=False)
    return app.app_dir


@pytest.fixture(scope="module")
def conversation(app: TaskWeaverApp) -> Iterator[Session]:
    """A session that goes on through the tests, whose kernel runs before the first of them."""
    with app.get_session() as session:
        ask(session, "run this code: 1")
        yield session


@pytest.fixture
def session(conversation: Session, project: Path) -> Session:
    """The session of the tests that ask about files which they name, without others' files."""
    for path in conversation.execution_cwd.iterdir():
        path.unlink()
    return conversation


@pytest.fixture
def new_session(app: TaskWeaverApp, project: Path) -> Iterator[Session]:
    """A session of a test's own: its first question has no request before it."""
    with app.get_session() as session:
        yield session


def ask(session: Session, words: str) -> Post:
    round_ = session.send_message(words)
    assert round_.state == "finished", words
    return round_.post_list[-1]


def stop(post: Post) -> str:
    return str(post.get_attachment(AttachmentType.stop)[0].content)


def test_the_mean_per_month_is_computed_and_drawn_in_a_project_as_it_comes(project: Path) -> None:
    with TaskWeaverApp(project) as app:
        session = app.get_session()
        question = "what is the mean of the Count column per month in s.csv, and plot it"
        answer = ask(session, question)
    assert stop(answer) == "Completed"
    dated = TABLE.dropna(subset=["Order Date"])
    expected = dated.groupby(dated["Order Date"].str[:7])["Count"].mean()
    for month, value in expected.items():
        assert [month, f"{value:.1f}"] in [line.split() for line in answer.message.splitlines()]
    (name,) = (p.name for p in session.execution_cwd.glob("*.png"))
    assert name in answer.message


def test_follow_ups_change_the_request_before(session: Session) -> None:
    ask(session, "mean of Count by Region in s.csv")
    answer = ask(session, "and now the maximum")
    assert ["North", "8"] in [line.split() for line in answer.message.splitlines()]
    answer = ask(session, "only in 2025")
    assert ["North", "7"] in [line.split() for line in answer.message.splitlines()]
    assert ".png" in ask(session, "now plot it").message


def test_a_column_that_is_not_there_is_named_with_those_that_are(new_session: Session) -> None:
    refused = ask(new_session, "sum of Profit by Region in s.csv")
    assert stop(refused) == "TaskFailure"
    assert "I did not understand `Profit`." in refused.message
    assert "`Unit Price`" in refused.message
    answer = ask(new_session, "sum of Unit Price by Region in s.csv")
    assert ["South", "2.0"] in [line.split() for line in answer.message.splitlines()]


def test_an_ambiguous_word_is_asked_about(new_session: Session, project: Path) -> None:
    table = TABLE.assign(**{"Ship Date": TABLE["Order Date"]})
    table.to_csv(project / "data" / "s.csv", index=False)
    question = ask(new_session, "sum of Count per month in s.csv")
    assert stop(question) == "Clarification"
    assert "`Order Date` or `Ship Date`" in question.message


def test_a_file_that_is_not_there_is_named(session: Session) -> None:
    answer = ask(session, "describe gone.csv")
    assert stop(answer) == "TaskFailure"
    assert "gone.csv" in answer.message
    assert "/load" in answer.message


def test_code_of_the_user_that_fails_is_reported_not_repeated(session: Session) -> None:
    answer = ask(session, "run this code: 1/0")
    assert stop(answer) == "TaskFailure"
    assert "ZeroDivisionError" in answer.message


def test_sqlite_tables_are_found_by_name_and_asked_for_otherwise(
    session: Session, project: Path
) -> None:
    with sqlite3.connect(project / "data" / "shop.db") as connection:
        TABLE.to_sql("orders", connection, index=False)
        pd.DataFrame({"name": ["a", "b"]}).to_sql("customers", connection, index=False)
    connection.close()
    question = ask(session, "describe shop.db")
    assert "`orders`" in question.message
    assert "`customers`" in question.message
    assert "29" in ask(session, "sum of Count in shop.db orders").message
    assert (
        "2" in ask(session, "run this SQL on shop.db: SELECT count(*) AS n FROM customers").message
    )


def test_an_edited_file_is_read_again(session: Session, project: Path) -> None:
    assert "29" in ask(session, "sum of Count in s.csv").message
    (project / "data" / "s.csv").write_text("Region,Count\nNorth,1000\nSouth,5\n")
    assert "1005" in ask(session, "sum of Count in s.csv").message
    (project / "data" / "s.csv").write_text("Area,Amount\nNorth,7\nSouth,50\n")
    assert "57" in ask(session, "sum of Amount in s.csv").message
    given = session.send_message("describe s.csv", files=[{"name": "s.csv", "content": b"n\n4\n"}])
    assert "Amount" not in given.post_list[-1].message
    assert "4" in ask(session, "rows where n > 3").message


def test_a_kernel_that_dies_is_told_as_that(new_session: Session) -> None:
    assert "kernel died" in ask(new_session, "run this code: import os; os._exit(1)").message


def test_what_it_does_not_understand_it_says_with_what_it_does(session: Session) -> None:
    answer = ask(session, "write a poem about the sea")
    assert stop(answer) == "TaskFailure"
    assert "offline analyst" in answer.message
    assert "LLM_API_KEY" in answer.message
    assert stop(ask(session, "help")) == "Completed"
