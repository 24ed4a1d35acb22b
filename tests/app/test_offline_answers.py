"""Whole rounds with the offline analyst: real prompts, real kernel, real files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from sizes import some

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

COLD = {"execution.zygote": False, "execution.sandbox": "none"}


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


def test_another_encoding_is_read(session: Session, project: Path) -> None:
    (project / "data" / "odd.csv").write_bytes("name;n\nCafé;4\nBär;6\n".encode("latin-1"))
    assert "**10**" in ask(session, "sum of n in odd.csv").message


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


@pytest.mark.parametrize("suffix", some(["xlsx", "parquet", "json", "jsonl", "tsv"], 1))
def test_a_format_that_is_not_csv_is_read(session: Session, project: Path, suffix: str) -> None:
    path = project / "data" / f"t.{suffix}"
    writers = {
        "tsv": lambda: TABLE.to_csv(path, sep="\t", index=False),
        "json": lambda: TABLE.to_json(path),
        "jsonl": lambda: TABLE.to_json(path, orient="records", lines=True),
        "parquet": lambda: (pytest.importorskip("pyarrow"), TABLE.to_parquet(path)),
        "xlsx": lambda: (pytest.importorskip("openpyxl"), TABLE.to_excel(path, index=False)),
    }
    writers[suffix]()
    assert "29" in ask(session, f"total Count in t.{suffix}").message


def test_columns_with_hostile_names_are_only_names(session: Session, project: Path) -> None:
    name = 'it\'s \\n {x} "y"'
    pd.DataFrame({name: [1, 2], "b": [3, 4]}).to_csv(project / "data" / "odd.csv", index=False)
    answer = ask(session, f"sum of `{name}` in odd.csv")
    assert "3" in answer.message


@pytest.mark.long
def test_semicolons_spaces_in_names_and_empty_files_are_met(
    session: Session, project: Path
) -> None:
    (project / "data" / "meine daten.csv").write_text("Größe;Wert\n1;2\n3;4\n", "utf-8")
    (project / "data" / "empty.csv").touch()
    assert "6" in ask(session, "sum of Wert in meine daten.csv").message
    assert "**2**" in ask(session, "mean of Größe in meine daten.csv").message
    assert "empty" in ask(session, "describe empty.csv").message


@pytest.mark.long
def test_rows_without_a_group_and_texts_that_are_no_numbers_are_told(
    new_session: Session, project: Path
) -> None:
    (project / "data" / "gaps.csv").write_text("g,v\nx,1\n,2\nx,3\n")
    assert "1 without `g`" in ask(new_session, "sum of v by g in gaps.csv").message
    rows = "".join(f"r{n},{n}\n" for n in range(9))
    (project / "data" / "odd.csv").write_text(f"m,n\n{rows}r9,none given\n")
    answer = ask(new_session, "sum of n in odd.csv")
    assert "`n` does not hold numbers" in answer.message


@pytest.mark.parametrize(
    ("content", "question", "result"),
    some(
        [
            ("m;n\na;1.000,5\nb;2.000,5\n", "sum of n", "**3001**"),
            ("m,n\na,$5.50\nb,$4.50\n", "sum of n", "**10**"),
            ('m,n\na,"1,200"\nb,"10,000"\n', "sum of n", "**11,200**"),
            ('m,n\na,"1,200"\nb,900\n', "max of n", "1200"),
            ("m;n\na;1,5\nb;2,5\n", "mean of n", "**2**"),
            ("m,n\na,40%\nb,60 %\n", "mean of n", "50"),
        ],
        2,
    ),
)
def test_numbers_written_as_text_are_computed_with(
    session: Session, project: Path, content: str, question: str, result: str
) -> None:
    (project / "data" / "text.csv").write_text(content)
    assert result in ask(session, f"{question} in text.csv").message


def test_a_column_of_text_is_told_to_be_one(new_session: Session, project: Path) -> None:
    (project / "data" / "codes.csv").write_text("label,n\nA1,1\nB2,2\n17,3\n")
    for function in some(("sum", "mean", "max"), 1):
        answer = ask(new_session, f"{function} of label in codes.csv")
        assert "`label` does not hold numbers" in answer.message
        assert "`n`" in answer.message
        assert stop(answer) == "TaskFailure"


def test_an_edited_file_is_read_again(session: Session, project: Path) -> None:
    assert "29" in ask(session, "sum of Count in s.csv").message
    (project / "data" / "s.csv").write_text("Region,Count\nNorth,1000\nSouth,5\n")
    assert "1005" in ask(session, "sum of Count in s.csv").message
    (project / "data" / "s.csv").write_text("Area,Amount\nNorth,7\nSouth,50\n")
    assert "57" in ask(session, "sum of Amount in s.csv").message
    given = session.send_message("describe s.csv", files=[{"name": "s.csv", "content": b"n\n4\n"}])
    assert "Amount" not in given.post_list[-1].message
    assert "4" in ask(session, "rows where n > 3").message


@pytest.mark.long
def test_a_wrong_encoding_is_mended_and_utf8_is_tried_first(
    session: Session, project: Path
) -> None:
    (project / "data" / "utf.csv").write_text("Größe|n\n1|2\n3|4\n", "utf-8")
    assert "Größe" in ask(session, "what columns are in utf.csv").message
    (project / "data" / "latin.csv").write_bytes("Größe,n\n1,2\n3,4\n".encode("latin-1"))
    assert "4" in ask(session, "sum of Größe in latin.csv").message


@pytest.mark.long
def test_words_of_a_file_name_are_no_columns(session: Session, project: Path) -> None:
    (project / "data" / "price count.csv").write_text("price,count,n\n1,20,3\n2,30,4\n")
    assert "50" in ask(session, "sum of count in price count.csv").message
    assert "7" in ask(session, "total n in price count.csv").message
    (project / "data" / "bob's data.csv").write_text("a,b\n1,20\n2,30\n")
    assert "50" in ask(session, "sum of b in bob's data.csv").message
    (project / "data" / "bob's.csv").write_text("a,b\n1,21\n2,30\n")
    assert "51" in ask(session, "sum of b in bob's.csv").message


@pytest.mark.parametrize(
    ("question", "result"),
    some(
        [
            ("mean of max", "**2**"),
            ("max of count", "40"),
            ("sum of mean", "15"),
            ("what is the total of the count column", "70"),
            ("mean of sum by name", "z"),
        ],
        1,
    ),
)
def test_columns_may_be_named_like_functions(
    session: Session, project: Path, question: str, result: str
) -> None:
    rows = "name,max,count,sum,mean\nz,1,30,7,5\ny,3,40,9,10\n"
    (project / "data" / "kw.csv").write_text(rows)
    assert result in ask(session, f"{question} in kw.csv").message


def test_a_kernel_that_dies_is_told_as_that(new_session: Session) -> None:
    assert "kernel died" in ask(new_session, "run this code: import os; os._exit(1)").message


MENU = (
    ("describe s.csv", "Count"),
    ("rows where Count > 6", "2 rows"),
    ("scatter plot of Count and Unit Price", ".png"),
    ("outliers in Unit Price", "1 row"),
    ("what is 17*23?", "391"),
    ("how many rows are in s.csv?", "6"),
    ("missing values", "Order Date"),
    ("distinct Region", "North"),
    ("top 2 regions by total count", "18"),
    ("correlation of Count and Unit Price", "-0."),
    ("histogram of Count", ".png"),
    ("pie chart of Region", ".png"),
    ("box plot of Count", ".png"),
    ("sort by Count descending", "8"),
    ("the last 2 rows", "4"),
    ("a sample of the rows", "Count"),
    ("mean and max of Count by Region, as a bar chart", ".png"),
    ("total Count in the North", "18"),
    ("list the files", "s.csv"),
    ("bar chart of Region", ".png"),
)


def test_words_of_the_menu_are_answered(session: Session) -> None:
    ask(session, "load s.csv")
    for words, part in some(MENU, 5):
        assert part in ask(session, words).message, words


def test_what_it_does_not_understand_it_says_with_what_it_does(session: Session) -> None:
    answer = ask(session, "write a poem about the sea")
    assert stop(answer) == "TaskFailure"
    assert "offline analyst" in answer.message
    assert "LLM_API_KEY" in answer.message
    assert stop(ask(session, "help")) == "Completed"


@pytest.mark.long
def test_it_also_speaks_for_a_code_writer_alone(project: Path) -> None:
    config = {"session.roles": ["code_interpreter"], **COLD}
    with TaskWeaverApp(project, config=config) as app:
        session = app.get_session()
        assert "29" in session.send_message("sum of Count in s.csv").post_list[-1].message
        question = "sum of Count in the North in s.csv"
        assert 'column "Unit Price"' in session.send_message(question).post_list[-1].message
        assert "rows used: " in session.send_message(question).post_list[-1].message
        assert "I did not understand" in session.send_message("a poem").post_list[-1].message


@pytest.mark.long
def test_a_long_conversation_is_summarised_and_goes_on_about_the_same_file(project: Path) -> None:
    config = {"planner.compaction_threshold": 3, "planner.compaction_retain_recent": 1}
    config |= COLD
    with TaskWeaverApp(project, config=config) as app:
        session = app.get_session()
        for _ in range(5):
            answer = ask(session, "sum of Count in s.csv")
        assert "29" in answer.message
        histogram = ask(session, "histogram of Count")
        rounds = session.memory.conversation.rounds
        assert histogram.message.startswith("Histogram of `Count` (6 rows)")
        assert any("read_table('s.csv')" in post.message for post in rounds[-1].post_list)
